// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// A pseudo-random permutation of [0, 2^bits): the row of each position, without repetitions. Multiplication
/// by an odd number, addition, and folding the upper half onto the lower are invertible, so every round is a
/// permutation.
struct scrambled_row {
  std::uint64_t seed;
  int bits;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t) const {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    auto x = static_cast<std::uint64_t>(position) & mask;
    for (std::uint64_t round = 1; round <= 3; ++round) {
      x = (x * 0x9FB21C651E98DF25ull + seed * round) & mask;
      x ^= x >> (bits / 2 + 1);
    }
    return static_cast<std::int64_t>(x);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The clock of the readings; tests replace it.
struct wall_clock : std::chrono::steady_clock {
  static void pause(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }
};

/// Times gathers and scatters of random rows, from the call to the end of its wait().
template <class Exec, class Clock = wall_clock>
class row_timer {
 protected:
  static constexpr bool on_host = is_host_exec<Exec>;
  using clock = Clock;
  using batch_space = std::conditional_t<on_host, pageable_space, device_space>;
  static constexpr std::size_t sets = 3;

  row_timer(const Exec& exec, double max_seconds, std::size_t max_bytes)
      : exec_(exec),
        deadline_(clock::now() + std::chrono::duration_cast<typename clock::duration>(
                                     std::chrono::duration<double>(std::min(max_seconds, 1e9)))),
        bytes_(std::bit_floor(std::max<std::size_t>(max_bytes, std::size_t{1} << 20))),
        batch_("calibration::batch", std::min(bytes_, std::size_t{1} << 26) / sizeof(float)) {
    for (auto& set : indices_)
      set = tensor<std::int64_t, batch_space>("calibration::indices",
                                              std::min(bytes_ / 16, std::size_t{1} << 20));
  }

  [[nodiscard]] bool in_time() const { return clock::now() < deadline_; }

  /// The lower quartile of a few calls, because other load only makes a call longer. A first call, not
  /// counted, allocates the memory and wakes the threads. work(i) returns a ticket.
  template <class Work>
  double seconds(const Work& work) {
    work(0).join();
    std::vector<double> times;
    const auto begin = clock::now();
    do {
      forget();
      const auto start = clock::now();
      work(times.size() + 1).join();
      times.push_back(std::chrono::duration<double>(clock::now() - start).count());
    } while (times.size() < 3 ||
             (times.size() < 15 && clock::now() - begin < std::chrono::milliseconds(25) && in_time()));
    const auto low = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
    std::nth_element(times.begin(), low, times.end());
    return *low;
  }

  /// Evicts the data and translations of the last call from the device's caches, as work between two calls
  /// does.
  void forget() {
    if constexpr (!on_host) {
      init::zeros(exec_, batch_);
      exec_.fence("ferry::calibrate");
    }
  }

  /// The first `bytes` bytes of a block as a table; fewer if the block is smaller. Always a power of two.
  template <class Space>
  auto table_of(tensor<float, Space>& block, std::size_t bytes, std::size_t row_bytes) {
    const std::size_t whole = std::bit_floor(block.size() * sizeof(float));
    return tensor_view<float, Space>(block.data(), std::min(bytes, whole) / row_bytes,
                                     row_bytes / sizeof(float));
  }
  auto batch_of(std::size_t n, std::size_t width) {
    return tensor_view<float, batch_space>(batch_.data(), n, width);
  }
  /// A new random list for each call, so that no cache has its rows.
  template <class Table>
  void draw(const Table& table, std::size_t n) {
    const int bits = static_cast<int>(std::bit_width(table.rows())) - 1;
    for (std::size_t set = 0; set < sets; ++set)
      init::custom(exec_, list(set, n), kernels::scrambled_row{++seed_ * 0x632BE59BD9B4E019ull, bits});
  }
  auto list(std::size_t call, std::size_t n) {
    return tensor_view<std::int64_t, batch_space>(indices_[call % sets].data(), n);
  }
  template <class Table>
  [[nodiscard]] std::size_t at_most(const Table& table, std::size_t n) const {
    return std::min({n, table.rows(), batch_.size() / table.width(), indices_[0].size()});
  }

  /// The time of a row in ns, without `start_us`. `n` is lowered to the size of the memory.
  template <class Path, bool Writes = false, class Space>
  double row_ns(tensor<float, Space>& block, std::size_t bytes, std::size_t row_bytes, std::size_t& n,
                double start_us) {
    const auto table = table_of(block, bytes, row_bytes);
    n = at_most(table, n);
    const auto batch = batch_of(n, table.width());
    draw(table, n);
    const double time = seconds([&](std::size_t call) {
      const auto rows = list(call, n);
      if constexpr (Writes)
        return scatter(exec_, table, rows, batch, Path{}, bounds::unchecked{}, duplicates::assume_unique{});
      else
        return gather(exec_, table, rows, batch, Path{}, bounds::unchecked{});
    });
    return std::max(0.0, time * 1e9 - start_us * 1e3) / static_cast<double>(n);
  }

  /// The facts of the gather that row_ns times.
  template <class Space>
  [[nodiscard]] move_facts timed(std::size_t row_bytes, std::size_t n) const {
    return {.action = verb::gather,
            .table_space = Space::name,
            .batch_space = batch_space::name,
            .table_bytes = static_cast<std::int64_t>(bytes_),
            .row_bytes = static_cast<std::int64_t>(row_bytes),
            .positions = static_cast<std::int64_t>(n),
            .on_host = on_host};
  }

  Exec exec_;
  typename clock::time_point deadline_;
  std::size_t bytes_;  ///< of the tables, a power of two
  tensor<float, batch_space> batch_;
  std::array<tensor<std::int64_t, batch_space>, sets> indices_;
  std::uint64_t seed_ = 0;
};

}  // namespace ferry::detail
