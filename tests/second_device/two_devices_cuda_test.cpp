// SPDX-License-Identifier: Apache-2.0
#include "second_device/two_devices.hpp"
#include "support/oracle.hpp"
#include "support/profile.hpp"
#include "support/random.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

/// Two devices and more in one process; Kokkos' default one is the first.
namespace ferry_test::two_devices_cuda_test {

namespace {

using device_memory = ferry::device_space;

constexpr std::size_t rows = 700, width = 20, n = 400;
/// One path alone, which is less to compile.
constexpr ferry::path::direct direct{};

}  // namespace

TEST_CASE("one mapped table serves all devices through large pages", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  auto random = generator(54);
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  auto early = make_on<ferry::mapped_space>(-1, "early", rows, width, content);
  const instances execs;
  const auto readers = [](const ferry::tensor<float, ferry::mapped_space>& table) {
    std::vector<int> listed(static_cast<std::size_t>(device_count()), -9);
    REQUIRE(cudaMemRangeGetAttribute(listed.data(), listed.size() * sizeof(int),
                                     cudaMemRangeAttributeAccessedBy, table.data(),
                                     table.size() * sizeof(float)) == cudaSuccess);
    return std::set<int>(listed.begin(), listed.end());
  };
  std::set<int> every;
  for (const Kokkos::Cuda& exec : execs) {
    every.insert(exec.cuda_device());
    ferry::tensor<float, device_memory> batch("batch", ferry::device_of(exec), n, width);
    ferry::gather(exec, early, ids, batch, direct).wait();
    CHECK(equal(fetch(batch), gathered(content, width, ids, std::vector<float>(n * width, 0.0f))));
  }
  const auto late = make_on<ferry::mapped_space>(1, "late", rows, width, content);
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, late.data()) == cudaSuccess);
  if (attributes.type != cudaMemoryTypeManaged) SKIP("mapped memory is page-locked here");
  CHECK(readers(early) == every);
  CHECK(readers(late) == every);
}

TEST_CASE("a graph of another device repeats a gather there", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  const int device = GENERATE(range(1, std::max(device_count(), 2)));
  CAPTURE(device);
  const user_stream stream(device);
  const Kokkos::Cuda exec = instance_over(stream);
  auto random = generator(55);
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto table = make_on<device_memory>(device, "table", rows, width, content);
  auto chosen = make_on<device_memory>(device, "which", n, 1, ids);
  auto batch = make_on<device_memory>(device, "batch", n, width, std::vector<float>(n * width, -1.0f));
  const ferry::tensor_view<const std::int64_t, device_memory> list(chosen.data(), n);
  ferry::gather(exec, table, list, batch, direct).wait();
  send(batch, std::vector<float>(n * width, -1.0f));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  auto ticket = ferry::gather(exec, table, list, batch, direct);
  REQUIRE(cudaStreamEndCapture(stream.native(), &graph) == cudaSuccess);
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
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
  const instances execs;
  const auto reach = [](const Kokkos::Cuda& exec) { return ferry::current_profile(exec).pinned_reach_gib; };
  std::vector<decltype(reach(execs[0]))> expected;
  for (const Kokkos::Cuda& exec : execs) expected.push_back(reach(exec));
  for (int device = 1; device < device_count(); ++device) {
    auto changed = ferry::current_profile(execs[device]);
    changed.pinned_reach_gib += device;
    expected[static_cast<std::size_t>(device)] = changed.pinned_reach_gib;
    ferry::use_profile(execs[device], changed);
    for (const Kokkos::Cuda& exec : execs)
      CHECK(reach(exec) == expected[static_cast<std::size_t>(exec.cuda_device())]);
    CHECK(ferry::profile_origin(execs[0]) != ferry::profile_origin(execs[device]));
  }
  ferry_test::profile_holder::forget();
}

}  // namespace ferry_test::two_devices_cuda_test
