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
  const user_stream stream(1);
  const Kokkos::Cuda first, second = instance_over(stream);
  auto random = generator(53);
  for (const std::size_t count : {std::size_t{1}, std::size_t{333}, std::size_t{70001}})
    for (const Kokkos::Cuda* exec : {&first, &second})
      for (const int sender : {0, 1}) {
        CAPTURE(count, exec->cuda_device(), sender);
        const auto content = values<float>(random, count * 3);
        const auto source = make_on<device_memory>(sender, "source", count, 3, content);
        auto sink =
            make_on<device_memory>(1 - sender, "sink", count, 3, std::vector<float>(count * 3, -1.0f));
        ferry::copy(*exec, source, sink).wait();
        CHECK(equal(fetch(sink), content));
        // Converted, by a kernel that reaches the other device.
        ferry::tensor<double, device_memory> wide("wide", ferry::device{1 - sender}, count, 3);
        ferry::copy(*exec, source, wide).wait();
        const std::vector<double> doubled(content.begin(), content.end());
        CHECK(fetch(wide) == doubled);
        const auto second = ferry::clone<device_memory>(*exec, source).get();
        CHECK(second.device() == source.device());
        CHECK(equal(fetch(second), content));
      }
}

TEST_CASE("copies between devices come after the work on both", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  constexpr std::size_t large = 300000;
  const user_stream stream(1);
  const Kokkos::Cuda first, second = instance_over(stream);
  ferry::tensor<float, device_memory> first_array("here", large, 16),
      second_array("there", ferry::device{1}, large, 16);
  ferry::tensor<float, device_memory> back("back", large, 16);
  ferry::tensor<float, ferry::pinned_space> read("read", large, 16);
  std::vector<std::int64_t> ids(large, 0);
  for (std::size_t i = 0; i < large; ++i) ids[i] = static_cast<std::int64_t>(i);
  const auto plan_here = ferry::make_plan(first, ids, large);
  const auto plan_there = ferry::make_plan(second, ids, large);
  ferry::tensor<float, device_memory> ones("ones", large, 16),
      ones_there("ones", ferry::device{1}, large, 16);
  ferry::init::constant(first, ones, 1.0f);
  ferry::init::constant(second, ones_there, 1.0f);
  ferry::init::zeros(first, first_array);
  for (int round = 0; round < 10; ++round) {
    ferry::scatter_add(first, first_array, plan_here, ones, direct).detach();
    ferry::copy(second, first_array, second_array).detach();  // after the sum on the other device
    ferry::scatter_add(second, second_array, plan_there, ones_there, direct).detach();
    ferry::copy(first, second_array, first_array)
        .detach();  // after the sum there, and after the copy that read `here`
  }
  ferry::copy(first, first_array, read).wait();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < read.size(); ++i) wrong += read.data()[i] != 20.0f;
  CHECK(wrong == 0);
  ferry::copy(first, second_array, back).wait();
}

}  // namespace ferry_test::two_devices_copy_cuda_test
