// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/copy_case.hpp"

#include <algorithm>
#include <cmath>

/// Whole arrays between two memory spaces, against the vendor's copy of the same run.
namespace ferry_bench {
namespace {

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

/// The left half of the columns of an array of twice the width, into a dense array and back.
template <class Space>
void halves(session& run, std::int64_t row_bytes) {
  const std::size_t bytes = gibibyte(run) / 2;
  const auto width = row_bytes / static_cast<std::int64_t>(sizeof(float));
  const auto rows = static_cast<std::int64_t>(bytes) / row_bytes;
  array<Space> wide("wide", rows, 2 * width);
  array<ferry::device_space> dense("dense", rows, width);
  auto left = ferry::make_ref(wide);
  left.extents[1] = width;
  const element_value formula{width};
  ferry::init::custom(run.exec(), dense, formula);
  const facts setting = {{"gib", static_cast<double>(bytes) / 0x1p30}, {"row_bytes", row_bytes}};
  const std::string name = "copy.pitched." + short_name<Space>();
  const std::string suffix = "_device." + bytes_text(row_bytes);
  // Back first, so that the left half has the formula's elements.
  figure back;
  back.name = name + ".from" + suffix;
  back.setting = setting;
  back.bytes = static_cast<double>(bytes);
  back.counts = "payload";
  back.ceiling = run.ceiling("ceiling.d2h");
  back.time = measure(run, 1, [&](int) { return ferry::copy(run.exec(), dense, left); });
  figure result = back;
  result.name = name + ".to" + suffix;
  result.ceiling = run.ceiling("ceiling.h2d");
  result.time = measure(run, 1, [&](int) { return ferry::copy(run.exec(), left, dense); });
  ferry::init::constant(run.exec(), wide, -1.0F);
  ferry::copy(run.exec(), dense, left).wait();
  ferry::init::constant(run.exec(), dense, -1.0F);
  ferry::copy(run.exec(), left, dense).wait();
  const std::int64_t wrong = wrong_elements(run, dense, formula);
  conclude(run, back, wrong);
  conclude(run, result, wrong);
}

void pitched(session& run) {
  for (const std::int64_t row_bytes : {128, 512, 4096}) {
    halves<ferry::pinned_space>(run, row_bytes);
    halves<ferry::pageable_space>(run, row_bytes);
  }
}

/// A square matrix and its transpose. Transposed twice it is the formula's again.
template <class From>
void transpose(session& run, const std::string& name, const traffic& moved) {
  const auto edge = static_cast<std::int64_t>(std::sqrt(static_cast<double>(gibibyte(run) / sizeof(float))));
  const element_value formula{edge};
  array<From> source("matrix", edge, edge);
  array<ferry::device_space> transpose("transpose", edge, edge), repeat("again", edge, edge);
  ferry::init::custom(run.exec(), source, formula);
  const auto turned = [](auto& matrix) {
    auto view = ferry::make_ref(matrix);
    std::swap(view.strides[0], view.strides[1]);
    return view;
  };
  figure result;
  result.name = name;
  const double bytes = static_cast<double>(source.size() * sizeof(float));
  result.setting = {{"gib", bytes / 0x1p30}, {"edge", edge}};
  result.bytes = bytes * moved.factor;
  result.counts = moved.counts;
  result.ceiling = run.ceiling(moved.ceiling);
  result.time = measure(run, 1, [&](int) { return ferry::copy(run.exec(), turned(source), transpose); });
  ferry::init::constant(run.exec(), transpose, -1.0F);
  ferry::copy(run.exec(), turned(source), transpose).wait();
  ferry::copy(run.exec(), turned(transpose), repeat).wait();
  conclude(run, result, wrong_elements(run, repeat, formula));
}

void transposed(session& run) {
  transpose<ferry::device_space>(run, "copy.transposed.device", inside_the_device());
  transpose<ferry::pageable_space>(run, "copy.transposed.pageable.to_device", over_the_link());
  transpose<ferry::pinned_space>(run, "copy.transposed.pinned.to_device", over_the_link());
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
const registration rows_apart{"copy.pitched", pitched};
const registration turned_matrices{"copy.transposed", transposed};
const registration images{"copy.round_trip", round_trip};

}  // namespace
}  // namespace ferry_bench
