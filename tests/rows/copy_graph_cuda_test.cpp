// SPDX-License-Identifier: Apache-2.0
#include "copy_layout.hpp"
#include "support/oracle.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <optional>

/// Copies of every kind in a graph, and copies by several threads on one stream of the test's own.
namespace ferry_test::copy_graph_cuda_test {

namespace {

void check(cudaError_t status) {
  CAPTURE(cudaGetErrorString(status));
  REQUIRE(status == cudaSuccess);
}

class stream {
 public:
  stream() {
    check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking));
    exec_.emplace(handle_);
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() {
    exec_.reset();
    cudaStreamDestroy(handle_);
  }
  [[nodiscard]] const Kokkos::Cuda& exec() const { return *exec_; }
  [[nodiscard]] cudaStream_t handle() const { return handle_; }

 private:
  cudaStream_t handle_ = nullptr;
  std::optional<Kokkos::Cuda> exec_;
};

template <class FromSpace, class ToSpace>
void replay(const layout& source, const layout& sink, std::size_t transfers) {
  CAPTURE(FromSpace::name, ToSpace::name, source.text(), sink.text());
  auto random = generator(130);
  const stream on;
  auto expected = values<float>(random, static_cast<std::size_t>(sink.size));
  auto from = make<FromSpace>("from", values<float>(random, static_cast<std::size_t>(source.size)));
  auto to = make<ToSpace>("to", expected);
  const auto here = array_in(from, source);
  const auto there = array_in(to, sink);
  ferry::copy(on.exec(), here, there).wait();  // loads the kernels
  check(cudaStreamBeginCapture(on.handle(), cudaStreamCaptureModeThreadLocal));
  ferry::ticket ticket = ferry::copy(on.exec(), here, there);
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(on.handle(), &captured));
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(captured, nullptr, &nodes));
  CHECK(nodes == transfers);
  cudaGraphExec_t graph = nullptr;
  check(cudaGraphInstantiate(&graph, captured, 0));
  check(cudaGraphDestroy(captured));
  for (int launch = 0; launch < 2; ++launch) {
    const auto content = values<float>(random, static_cast<std::size_t>(source.size));
    put(from, content);
    check(cudaGraphLaunch(graph, on.handle()));
    ticket.wait();
    const auto near = source.places(), far = sink.places();
    for (std::size_t i = 0; i < near.size(); ++i) expected[far[i]] = content[near[i]];
    CHECK(same_bits(take(to), expected));
  }
  check(cudaGraphExecDestroy(graph));
}

}  // namespace

TEST_CASE("a graph repeats transfers of rows, and kernels of other layouts", "[copy][graph]") {
  auto random = generator(131);
  using ferry::device_space, ferry::pinned_space;
  layout shape;
  shape.rank = 2;
  shape.extents = {50, 300};
  const auto apart = arrange(random, shape, arrangement::rows_apart);
  const auto dense = arrange(random, shape, arrangement::row_major);
  const auto turned = arrange(random, shape, arrangement::column_major);
  replay<pinned_space, device_space>(apart, dense, 1);
  replay<device_space, pinned_space>(dense, apart, 1);
  replay<device_space, device_space>(apart, dense, 1);
  replay<device_space, device_space>(turned, dense, 1);
  replay<pinned_space, device_space>(turned, dense, 1);
  shape.rank = 3;
  shape.extents = {4, 5, 300};
  const auto slices = arrange(random, shape, arrangement::row_major);
  auto gaps = slices;
  gaps.strides = {2 * 7 * 310, 310, 1};  // whole rows between slices
  gaps.size = gaps.first + 5 * gaps.strides[0];
  replay<pinned_space, device_space>(gaps, slices, 1);
  replay<device_space, pinned_space>(slices, gaps, 1);
  gaps.strides = {7 * 310 + 5, 310, 1};  // not: a transfer for each slice
  replay<pinned_space, device_space>(gaps, slices, 4);
}

TEST_CASE("a copy through slots is refused in a capture, which goes on", "[copy][graph]") {
  const stream on;
  const std::vector<float> here(1000, 1.0f);
  ferry::tensor<float, ferry::device_space> there("there", here.size()), twin("twin", here.size());
  ferry::copy(on.exec(), here, there).wait();
  ferry::copy(on.exec(), there, twin).wait();
  check(cudaStreamBeginCapture(on.handle(), cudaStreamCaptureModeThreadLocal));
  CHECK_THROWS_MATCHES(
      ferry::copy(on.exec(), here, there), ferry::invalid_argument,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("is being captured into a graph")));
  ferry::ticket ticket = ferry::copy(on.exec(), there, twin);
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(on.handle(), &captured));
  REQUIRE(captured != nullptr);
  check(cudaGraphDestroy(captured));
}

TEST_CASE("copy takes layouts that Kokkos::deep_copy refuses between host and device", "[copy]") {
  const exec_space exec;
  Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace> here("here", 37, 65);
  const Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::CudaSpace> there("there", 37, 65);
  for (std::size_t i = 0; i < 37; ++i)
    for (std::size_t j = 0; j < 65; ++j) here(i, j) = static_cast<float>(i * 100 + j);
  CHECK_THROWS(Kokkos::deep_copy(there, here));
  ferry::copy(exec, here, there).wait();
  const auto seen = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, there);
  bool equal = true;
  for (std::size_t i = 0; i < 37; ++i)
    for (std::size_t j = 0; j < 65; ++j) equal = equal && seen(i, j) == here(i, j);
  CHECK(equal);
  Kokkos::deep_copy(here, -1.0f);
  ferry::copy(exec, there, here).wait();
  for (std::size_t i = 0; i < 37; ++i)
    for (std::size_t j = 0; j < 65; ++j) equal = equal && seen(i, j) == here(i, j);
  CHECK(equal);
}

}  // namespace ferry_test::copy_graph_cuda_test
