// SPDX-License-Identifier: Apache-2.0
#include "copy_layout.hpp"
#include "support/graph_cuda.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Copies of every kind in a graph, and copies by several threads on one stream of the test's own.
namespace ferry_test::copy_graph_cuda_test {

template <class FromSpace, class ToSpace>
void replay(const layout& source, const layout& sink, std::size_t transfers) {
  CAPTURE(FromSpace::name, ToSpace::name, source.text(), sink.text());
  auto random = generator(130);
  const stream queue(cudaStreamNonBlocking);
  auto expected = values<float>(random, static_cast<std::size_t>(sink.size));
  auto source_memory = make<FromSpace>("from", values<float>(random, static_cast<std::size_t>(source.size)));
  auto sink_memory = make<ToSpace>("to", expected);
  const auto source_array = array_in(source_memory, source);
  const auto sink_array = array_in(sink_memory, sink);
  ferry::copy(queue.exec(), source_array, sink_array).wait();  // loads the kernels
  ferry::ticket ticket;
  graph repeated(queue, [&] { ticket = ferry::copy(queue.exec(), source_array, sink_array); });
  CHECK(repeated.nodes() == transfers);
  for (int launch = 0; launch < 2; ++launch) {
    const auto content = values<float>(random, static_cast<std::size_t>(source.size));
    put(source_memory, content);
    repeated.launch();
    ticket.wait();
    const auto near = source.places(), far = sink.places();
    for (std::size_t i = 0; i < near.size(); ++i) expected[far[i]] = content[near[i]];
    CHECK(same_bits(take(sink_memory), expected));
  }
}

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
  const stream queue(cudaStreamNonBlocking);
  const std::vector<float> host_array(1000, 1.0f);
  ferry::tensor<float, ferry::device_space> device_array("there", host_array.size()),
      twin("twin", host_array.size());
  ferry::copy(queue.exec(), host_array, device_array).wait();
  ferry::copy(queue.exec(), device_array, twin).wait();
  ferry::ticket ticket;
  const graph captured(queue, [&] {
    CHECK_THROWS_MATCHES(ferry::copy(queue.exec(), host_array, device_array), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring("is being captured into a graph")));
    ticket = ferry::copy(queue.exec(), device_array, twin);
  });
  CHECK(captured.nodes() == 1);
}

TEST_CASE("copy takes layouts that Kokkos::deep_copy refuses between host and device", "[copy]") {
  const exec_space exec;
  Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace> host_array("here", 37, 65);
  const Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::CudaSpace> device_array("there", 37, 65);
  for (std::size_t i = 0; i < 37; ++i)
    for (std::size_t j = 0; j < 65; ++j) host_array(i, j) = static_cast<float>(i * 100 + j);
  CHECK_THROWS(Kokkos::deep_copy(device_array, host_array));
  ferry::copy(exec, host_array, device_array).wait();
  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, device_array);
  bool equal = true;
  for (std::size_t i = 0; i < 37; ++i)
    for (std::size_t j = 0; j < 65; ++j) equal = equal && result(i, j) == host_array(i, j);
  CHECK(equal);
  Kokkos::deep_copy(host_array, -1.0f);
  ferry::copy(exec, device_array, host_array).wait();
  for (std::size_t i = 0; i < 37; ++i)
    for (std::size_t j = 0; j < 65; ++j) equal = equal && result(i, j) == host_array(i, j);
  CHECK(equal);
}

}  // namespace ferry_test::copy_graph_cuda_test
