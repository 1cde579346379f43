// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/check.hpp"
#include "support/measure.hpp"
#include "support/tables.hpp"
#include "support/traffic.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// Whole arrays between two memory spaces, against the vendor's copy of the same run.
namespace ferry_bench {
namespace {

/// Counts the elements of row-major memory that are not the formula's, where they lie.
template <class Array>
std::int64_t wrong_elements(const session& run, const Array& array, const element_value& expected) {
  using space = typename Array::memory_space;
  const auto size = static_cast<std::int64_t>(array.size());
  const changed_elements wrong{array.data(), expected};
  if constexpr (std::is_same_v<space, ferry::pageable_space>)
    return count_of(Kokkos::DefaultHostExecutionSpace{}, "ferry_bench::check", size, wrong);
  else
    return count_of(run.exec(), "ferry_bench::check", size, wrong);
}

/// Times copy(call), which moves `bytes` bytes into `to`, and checks the formula there after a copy onto poison.
template <class To, class Copy>
figure time_copy(session& run, const std::string& name, facts setting, To& target, double bytes,
                 const traffic& moved, const element_value& expected, const Copy& copy) {
  figure result;
  result.name = name;
  result.setting = std::move(setting);
  result.bytes = bytes * moved.factor;
  result.counts = moved.counts;
  if (!moved.ceiling.empty()) result.ceiling = run.ceiling(moved.ceiling);
  result.time = measure(run, 1, copy);
  ferry::init::constant(run.exec(), target, -1.0F);
  copy(0).wait();
  conclude(run, result, wrong_elements(run, target, expected));
  return result;
}

template <class Space>
using array = ferry::tensor<float, Space>;

std::size_t gibibyte(const session& run) {
  return run.chosen().quick ? std::size_t{1} << 24 : std::size_t{1} << 30;
}

/// "pageable"
template <class Space>
std::string short_name() {
  return std::string(Space::name.substr(0, Space::name.find('_')));
}

template <class Space>
void both_ways(session& run) {
  constexpr std::int64_t width = 512;
  const std::size_t bytes = gibibyte(run);
  const std::size_t rows = bytes / sizeof(float) / width;
  const element_value formula{width};
  array<Space> host_array("here", rows, width);
  array<ferry::device_space> device_array("there", rows, width);
  const facts setting = {{"gib", static_cast<double>(bytes) / 0x1p30},
                         {"threads", std::int64_t{Kokkos::DefaultHostExecutionSpace().concurrency()}},
                         {"memory", host_array.describe()}};
  const std::string name = "copy." + short_name<Space>();
  ferry::init::custom(run.exec(), host_array, formula);
  time_copy(run, name + ".to_device.1GiB", setting, device_array, static_cast<double>(bytes), over_the_link(),
            formula, [&](int) { return ferry::copy(run.exec(), host_array, device_array); });
  time_copy(run, name + ".from_device.1GiB", setting, host_array, static_cast<double>(bytes),
            back_over_the_link(), formula,
            [&](int) { return ferry::copy(run.exec(), device_array, host_array); });
}

void spaces(session& run) {
  both_ways<ferry::pageable_space>(run);
  both_ways<ferry::pinned_space>(run);
  both_ways<ferry::mapped_space>(run);
}

/// Fifty images of 3 x 3840 x 2160 floats to the device and back, as SpeedTorch and PyTorch copy them.
template <class Space>
void there_and_back(session& run, double vendor_ms) {
  const bool quick = run.chosen().quick;
  const std::int64_t images = quick ? 2 : 50, height = quick ? 36 : 3840, across = quick ? 64 : 2160;
  array<Space> host_array("images", images, 3, height, across);
  array<ferry::device_space> device_array("there", images, 3, height, across);
  const element_value formula{static_cast<std::int64_t>(host_array.width())};
  ferry::init::custom(run.exec(), host_array, formula);
  ferry::copy(run.exec(), host_array, device_array).wait();
  const double bytes = static_cast<double>(host_array.size() * sizeof(float));
  const std::string name = "copy.round_trip." + short_name<Space>();
  const auto result = time_copy(run, name, {{"gib", bytes / 0x1p30}, {"images", images}}, host_array, bytes,
                                {2.0, "payload, there and back", ""}, formula, [&](int call) {
                                  // The check writes poison over what came back; the device still has it.
                                  if (call != 0) ferry::copy(run.exec(), host_array, device_array).detach();
                                  return ferry::copy(run.exec(), device_array, host_array);
                                });
  run.results().ratio(name, "copy.round_trip.vendor", vendor_ms / result.time.device.median());
}

void round_trip(session& run) {
  const bool quick = run.chosen().quick;
  const std::size_t bytes = std::size_t{quick ? 2u * 3 * 36 * 64 : 50u * 3 * 3840 * 2160} * sizeof(float);
  figure vendor;
  vendor.name = "copy.round_trip.vendor";
  vendor.setting = {{"gib", static_cast<double>(bytes) / 0x1p30}};
  vendor.bytes = 2.0 * static_cast<double>(bytes);
  vendor.counts = "payload, there and back";
  {
    using kind = baseline::block::kind;
    const baseline::block host_block(kind::locked, bytes), device_block(kind::device, bytes);
    std::fill_n(static_cast<char*>(host_block.data()), bytes, char{1});
    vendor.time = measure(run, 1, [&](int) {
      baseline::copy(run.exec(), device_block.data(), host_block.data(), bytes);
      baseline::copy(run.exec(), host_block.data(), device_block.data(), bytes);
    });
  }
  vendor.verified = true;
  run.results().add(vendor);
  there_and_back<ferry::pinned_space>(run, vendor.time.device.median());
  there_and_back<ferry::pageable_space>(run, vendor.time.device.median());
}

const registration all_spaces{"copy.spaces", spaces};
const registration images{"copy.round_trip", round_trip};

}  // namespace
}  // namespace ferry_bench
