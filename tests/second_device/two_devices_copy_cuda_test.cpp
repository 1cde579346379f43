// SPDX-License-Identifier: Apache-2.0
#include "second_device/two_devices.hpp"
#include "support/random.hpp"

#include <cstdint>

namespace ferry_test::two_devices_copy_cuda_test {

namespace {

using device_memory = ferry::device_space;

/// One path alone, which is less to compile.
constexpr ferry::path::direct direct{};

}  // namespace

TEST_CASE("copy moves arrays between devices by an instance of either", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  const instances execs;
  auto random = generator(53);
  for (const std::size_t count : {std::size_t{1}, std::size_t{333}, std::size_t{70001}})
    for (const auto& [origin, target] : device_pairs())
      for (const int side : {origin, target}) {
        const Kokkos::Cuda& exec = execs[side];
        CAPTURE(count, side, origin, target);
        const auto content = values<float>(random, count * 3);
        const auto source = make_on<device_memory>(origin, "source", count, 3, content);
        auto sink = make_on<device_memory>(target, "sink", count, 3, std::vector<float>(count * 3, -1.0f));
        ferry::copy(exec, source, sink).wait();
        CHECK(equal(fetch(sink), content));
        // Converted, by a kernel that reaches the other device.
        ferry::tensor<double, device_memory> wide("wide", ferry::device{target}, count, 3);
        ferry::copy(exec, source, wide).wait();
        const std::vector<double> doubled(content.begin(), content.end());
        CHECK(fetch(wide) == doubled);
        const auto second = ferry::clone<device_memory>(exec, source).get();
        CHECK(second.device() == source.device());
        CHECK(equal(fetch(second), content));
      }
}

TEST_CASE("copies between devices come after the work on both, round all devices", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  constexpr std::size_t large = 300000;
  const instances execs;
  std::vector<std::int64_t> ids(large, 0);
  for (std::size_t i = 0; i < large; ++i) ids[i] = static_cast<std::int64_t>(i);
  // Round the ring of all devices, each of which adds one.
  const int devices = device_count();
  std::vector<ferry::tensor<float, device_memory>> tables, ones;
  std::vector<ferry::row_plan> plans;
  for (int d = 0; d < devices; ++d) {
    tables.emplace_back("table", ferry::device{d}, large, 16);
    ones.emplace_back("ones", ferry::device{d}, large, 16);
    ferry::init::constant(execs[d], ones.back(), 1.0f);
    plans.push_back(ferry::make_plan(execs[d], ids, large));
  }
  ferry::init::zeros(execs[0], tables[0]);
  for (int round = 0; round < 10; ++round)
    for (int d = 0; d < devices; ++d) {
      const auto place = static_cast<std::size_t>(d);
      const int next = (d + 1) % devices;
      ferry::scatter_add(execs[d], tables[place], plans[place], ones[place], direct).detach();
      // After the sum on this device, and after the copy that read the next one's table.
      ferry::copy(execs[next], tables[place], tables[static_cast<std::size_t>(next)]).detach();
    }
  ferry::tensor<float, ferry::pinned_space> read("read", large, 16);
  ferry::copy(execs[0], tables[0], read).wait();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < read.size(); ++i) wrong += read.data()[i] != static_cast<float>(10 * devices);
  CHECK(wrong == 0);
}

}  // namespace ferry_test::two_devices_copy_cuda_test
