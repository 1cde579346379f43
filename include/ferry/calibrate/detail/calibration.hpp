// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/calibrate/detail/row_timer.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The readings of ferry::calibrate: host times of public verbs, from the call to the end of its wait(), and
/// the numbers that follow from them as path_rule.hpp uses them.
namespace ferry::detail {

/// Takes readings until the time is over. Numbers without a reading are unchanged.
template <class Exec, class Clock = wall_clock>
class calibration : row_timer<Exec, Clock> {
  using base = row_timer<Exec, Clock>;
  using base::at_most, base::batch_, base::batch_of, base::bytes_, base::draw, base::exec_;
  using base::in_time, base::list, base::on_host, base::seconds, base::table_of;

 public:
  calibration(const Exec& exec, const machine_profile& start, double max_seconds, std::size_t max_bytes)
      : base(exec, max_seconds, max_bytes), known_(start) {
    known_.measured = 0;
  }

  machine_profile run() {
    if constexpr (on_host) {
      attempt([this] { on_the_host(); });
    } else {
      attempt([this] { inside_the_device(); });
      attempt([this] {
        tensor<float, pinned_space> block("calibration::pinned", bytes_ / sizeof(float));
        dma(block);
        link(block);
        pinned_knee(block);
        host_threads(block);
        sorted(block);
        both(block);
      });
      attempt([this] { mapped(); });
    }
    return known_;
  }

 private:
  /// Takes readings, or leaves them out if the memory is not available.
  template <class Readings>
  void attempt(const Readings& readings) {
    try {
      if (in_time()) readings();
    } catch (const bad_alloc&) {
    }
  }
  void got(reading group) { known_.measured |= bit_of(group); }

  static constexpr std::size_t mib = std::size_t{1} << 20;
  static constexpr auto mapped_least = static_cast<std::size_t>(mapped_reach_gib * 0x1p30);
  [[nodiscard]] double gib() const { return static_cast<double>(bytes_) / 0x1p30; }

  void on_the_host() {
    tensor<float, pageable_space> block("calibration::host", bytes_ / sizeof(float));
    init::zeros(exec_, block);
    std::size_t single = 1;
    known_.call_us = this->template row_ns<path::direct>(block, bytes_, 16, single, 0.0) * 1e-3;
    got(reading::calls);
    host_rows<path::direct>(block, known_.call_us);
  }

  static double gb_per_s(std::size_t row_bytes, double row_ns) {
    return static_cast<double>(row_bytes) / std::max(1e-3, row_ns);
  }

  /// Rows by the threads of the host, from short rows and from long ones; without `start_us`.
  template <class Path, class Space>
  void host_rows(tensor<float, Space>& block, double start_us) {
    std::size_t n = 131072;
    if (!in_time()) return;
    known_.host_read_row_ns = this->template row_ns<Path>(block, bytes_, 16, n, start_us);
    known_.host_read_gb_per_s = gb_per_s(512, this->template row_ns<Path>(block, bytes_, 512, n, start_us));
    got(reading::host_read);
    if (!in_time()) return;
    known_.host_write_row_ns = this->template row_ns<Path, true>(block, bytes_, 16, n, start_us);
    known_.host_write_gb_per_s =
        gb_per_s(512, this->template row_ns<Path, true>(block, bytes_, 512, n, start_us));
    got(reading::host_write);
  }

  void inside_the_device() {
    tensor<float, device_space> block("calibration::device", bytes_ / 2 / sizeof(float));
    std::size_t single = 1, many = std::size_t{1} << 20, few = 131072;
    known_.call_us = this->template row_ns<path::direct>(block, bytes_, 16, single, 0.0) * 1e-3;
    got(reading::calls);
    known_.device_row_ns = this->template row_ns<path::direct>(block, bytes_, 16, many, known_.call_us);
    known_.device_gb_per_s =
        2.0 * gb_per_s(512, this->template row_ns<path::direct>(block, bytes_, 512, few, known_.call_us));
    got(reading::device);
  }

  void dma(tensor<float, pinned_space>& block) {
    const std::size_t rows = std::min(bytes_, batch_.size() * sizeof(float)) / 1024;
    const auto table = table_of(block, rows * 1024, 1024);
    const auto batch = batch_of(table.rows(), 256);
    const double gigabytes = static_cast<double>(table.size()) * sizeof(float) * 1e-9;
    const auto rate = [&](double time) { return gigabytes / std::max(1e-9, time - known_.call_us * 1e-6); };
    known_.dma_to_device_gb_per_s =
        rate(seconds([&](std::size_t) { return copy(exec_, table, batch, path::direct{}); }));
    known_.dma_from_device_gb_per_s =
        rate(seconds([&](std::size_t) { return copy(exec_, batch, table, path::direct{}); }));
    got(reading::dma);
  }

  /// The link, by tables that any device keeps translated.
  void link(tensor<float, pinned_space>& block) {
    if (!in_time()) return;
    const auto rates = zero_copy(block, 128 * mib);
    known_.link_row_ns = rates[0];
    known_.link_read_gb_per_s = rates[1];
    known_.link_write_gb_per_s = rates[2];
    got(reading::link);
  }
  /// The ns of a short row, and the GB/s of reading and writing long rows.
  template <class Space>
  std::array<double, 3> zero_copy(tensor<float, Space>& block, std::size_t bytes) {
    std::size_t many = 262144, few = 16384;
    const double short_ns = this->template row_ns<path::direct>(block, bytes, 16, many, known_.call_us);
    const double read = this->template row_ns<path::direct>(block, bytes, 4096, few, known_.call_us);
    const double written = this->template row_ns<path::direct, true>(block, bytes, 4096, few, known_.call_us);
    return {short_ns, 4096.0 / std::max(1.0, read), 4096.0 / std::max(1.0, written)};
  }

  void pinned_knee(tensor<float, pinned_space>& block) {
    std::vector<double> sizes, extras;
    for (std::size_t bytes = 256 * mib; bytes <= bytes_ && in_time(); bytes *= 2) {
      std::size_t n = 131072;
      sizes.push_back(static_cast<double>(bytes) / 0x1p30);
      const double row = this->template row_ns<path::direct>(block, bytes, 128, n, known_.call_us);
      extras.push_back(std::max(0.0, row - known_.link_row_ns));
    }
    if (sizes.size() < 2) return;
    fit_reach(sizes, extras, known_);
    got(reading::pinned);
  }

  void host_threads(tensor<float, pinned_space>& block) {
    if (!in_time()) return;
    std::size_t few = 256;
    known_.staged_call_us =
        this->template row_ns<path::staged>(block, bytes_, 64, few, 0.0) * static_cast<double>(few) * 1e-3;
    got(reading::staged);
    host_rows<path::staged>(block, known_.staged_call_us);
  }

  /// The start, the sort and the rows of path::ordered.
  void sorted(tensor<float, pinned_space>& block) {
    if (!in_time()) return;
    const auto table = table_of(block, 128 * mib, 16);
    const std::size_t few = at_most(table, 1024), many = at_most(table, 262144);
    draw(table, many);
    const auto plan = make_plan(exec_, list(0, few), table.rows());
    const auto batch = batch_of(few, table.width());
    const double planned =
        1e6 * seconds([&](std::size_t) { return gather(exec_, table, plan, batch, path::ordered{}); });
    known_.ordered_call_us = std::max(0.0, planned - known_.call_us);
    std::size_t n = few;
    const double short_list_ns =
        this->template row_ns<path::ordered>(block, 128 * mib, 16, n, 0.0) * static_cast<double>(few);
    known_.sort_us = std::max(0.0, short_list_ns * 1e-3 - planned);
    n = many;
    const double whole =
        this->template row_ns<path::ordered>(block, 128 * mib, 16, n, 0.0) * static_cast<double>(many);
    known_.sort_ns_per_index = std::max(
        0.0, (whole - short_list_ns) / std::max(1.0, static_cast<double>(many - few)) - known_.link_row_ns);
    got(reading::sort);
    // One row per group of pages on average touches 1 - 1/e of the groups.
    if (!in_time() || gib() < 2.0 * known_.pinned_reach_gib) return;
    n = bytes_ / static_cast<std::size_t>(page_group_bytes);
    const double start_us = known_.call_us + known_.ordered_call_us + known_.sort_us +
                            known_.sort_ns_per_index * static_cast<double>(n) * 1e-3;
    const double row = this->template row_ns<path::ordered>(block, bytes_, 128, n, start_us);
    known_.pinned_group_ns = row / ((1.0 - std::exp(-1.0)) * (1.0 - known_.pinned_reach_gib / gib()));
    got(reading::ordered);
  }

  /// The start of path::cooperative, and its rate. Other programs may delay its threads, and the profile
  /// would keep the result. So a reading must be plausible: both ends together are not slower than the slower
  /// one alone. A machine that is busy for two seconds keeps its defaults.
  void both(tensor<float, pinned_space>& block) {
    const auto read = [&](std::size_t row_bytes, std::size_t& n) {
      for (int attempt = 0; attempt < 20 && in_time(); ++attempt) {
        const double us = 1e-3 * this->template row_ns<path::cooperative>(block, bytes_, row_bytes, n, 0.0) *
                          static_cast<double>(n);
        const auto costs = costs_of(known_, this->template timed<pinned_space>(row_bytes, n));
        const auto rows = static_cast<std::int64_t>(n);
        if (us <
            2e6 * std::max(costs[path_kind::staged].seconds(rows), costs[path_kind::ordered].seconds(rows)))
          return us;
        Clock::pause(std::chrono::milliseconds(100));
      }
      return 0.0;
    };
    std::size_t few = 256, many = 131072;
    const double start = read(64, few), wide = read(512, many);
    if (start == 0.0 || wide == 0.0) return;
    known_.cooperative_call_us = std::max(0.0, start - known_.sort_us);
    const auto count = static_cast<double>(many);
    const double rows_us = wide - start - known_.sort_ns_per_index * count * 1e-3;
    known_.cooperative_gb_per_s = gb_per_s(512, rows_us * 1e3 / count);
    got(reading::cooperative);
  }

  /// Mapped memory. With small pages as a fallback, its rates fall for tables inside of the block already.
  void mapped() {
    tensor<float, mapped_space> block("calibration::mapped", bytes_ / 2 / sizeof(float));
    const auto rates = zero_copy(block, mapped_least);
    known_.mapped_row_ns = rates[0];
    known_.mapped_read_gb_per_s = rates[1];
    known_.mapped_write_gb_per_s = rates[2];
    // Between the two sizes, the cost of a row with a translation grows with each doubling.
    if (bytes_ / 2 >= 512 * mib) {
      std::size_t n = 262144;
      const double doublings = std::log2(static_cast<double>(bytes_ / 2) / static_cast<double>(mapped_least));
      const double row = this->template row_ns<path::direct>(block, bytes_ / 2, 16, n, known_.call_us);
      known_.mapped_growth = std::max(0.0, row / std::max(rates[0], 1e-3) - 1.0) / doublings;
    }
    got(reading::mapped);
  }

  machine_profile known_;
};

}  // namespace ferry::detail
