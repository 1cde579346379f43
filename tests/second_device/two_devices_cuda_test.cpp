// SPDX-License-Identifier: Apache-2.0
#include "second_device/two_devices.hpp"
#include "support/oracle.hpp"
#include "support/profile.hpp"
#include "support/random.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <utility>

/// Two devices in one process; Kokkos' default one is the first.
namespace ferry_test::two_devices_cuda_test {

namespace {

using device_memory = ferry::device_space;

constexpr std::size_t rows = 700, width = 20, n = 400;
/// One path alone, which is less to compile.
constexpr ferry::path::direct direct{};

}  // namespace

TEST_CASE("one mapped table serves both devices through large pages", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  auto random = generator(54);
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  auto early = make_on<ferry::mapped_space>(-1, "early", rows, width, content);
  const user_stream stream(1);
  const Kokkos::Cuda first, second = instance_over(stream);
  const auto readers = [](const ferry::tensor<float, ferry::mapped_space>& table) {
    std::array<int, 2> devices{-9, -9};
    REQUIRE(cudaMemRangeGetAttribute(devices.data(), sizeof devices, cudaMemRangeAttributeAccessedBy,
                                     table.data(), table.size() * sizeof(float)) == cudaSuccess);
    return std::set<int>(devices.begin(), devices.end());
  };
  for (const Kokkos::Cuda* exec : {&first, &second}) {
    ferry::tensor<float, device_memory> batch("batch", ferry::device_of(*exec), n, width);
    ferry::gather(*exec, early, ids, batch, direct).wait();
    CHECK(equal(fetch(batch), gathered(content, width, ids, std::vector<float>(n * width, 0.0f))));
  }
  const auto late = make_on<ferry::mapped_space>(1, "late", rows, width, content);
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, late.data()) == cudaSuccess);
  if (attributes.type != cudaMemoryTypeManaged) SKIP("mapped memory is page-locked here");
  CHECK(readers(early) == std::set<int>{0, 1});
  CHECK(readers(late) == std::set<int>{0, 1});
}

TEST_CASE("a graph of the second device repeats a gather there", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  const user_stream stream(1);
  const Kokkos::Cuda exec = instance_over(stream);
  auto random = generator(55);
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto table = make_on<device_memory>(1, "table", rows, width, content);
  auto chosen = make_on<device_memory>(1, "which", n, 1, ids);
  auto batch = make_on<device_memory>(1, "batch", n, width, std::vector<float>(n * width, -1.0f));
  const ferry::tensor_view<const std::int64_t, device_memory> list(chosen.data(), n);
  ferry::gather(exec, table, list, batch, direct).wait();
  send(batch, std::vector<float>(n * width, -1.0f));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  auto ticket = ferry::gather(exec, table, list, batch, direct);
  REQUIRE(cudaStreamEndCapture(stream.native(), &graph) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&runs, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(runs, stream.native()) == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  ticket.wait();
  CHECK(equal(fetch(batch), gathered(content, width, ids, std::vector<float>(n * width, 0.0f))));
  cudaGraphExecDestroy(runs);
  cudaGraphDestroy(graph);
}

TEST_CASE("each device has its own profile", "[two_devices][profile]") {
  if (!has_two_devices()) SKIP("needs two devices");
  const user_stream stream(1);
  const Kokkos::Cuda first, second = instance_over(stream);
  const auto before = ferry::current_profile(first);
  auto changed = ferry::current_profile(second);
  changed.pinned_reach_gib += 1;
  ferry::use_profile(second, changed);
  CHECK(ferry::current_profile(second).pinned_reach_gib == changed.pinned_reach_gib);
  CHECK(ferry::current_profile(first).pinned_reach_gib == before.pinned_reach_gib);
  CHECK(ferry::profile_origin(first) != ferry::profile_origin(second));
  ferry_test::profile_holder::forget();
}

}  // namespace ferry_test::two_devices_cuda_test
