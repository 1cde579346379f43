// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/checked_rows.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/row_operations.hpp>

#include <catch2/catch_test_macros.hpp>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// Kernels of small batches, run by teams of a few threads.
namespace ferry_test::checked_rows_test {

namespace kernels = ferry::kernels;
namespace detail = ferry::detail;

/// Threads that all wait for one another wherever a device's would.
struct several_threads {
  static constexpr int size = 13;

  std::barrier<>& meeting;
  std::byte* memory;
  int league;
  int rank;

  [[nodiscard]] int league_rank() const { return league; }
  [[nodiscard]] int team_rank() const { return rank; }
  [[nodiscard]] static int team_size() { return size; }
  void team_barrier() const { meeting.arrive_and_wait(); }
  template <class T>
  [[nodiscard]] T& shared() const {
    return *reinterpret_cast<T*>(memory);
  }
};

template <class Kernel>
void run_teams(const Kernel& kernel, int team_items, std::int64_t items) {
  alignas(16) static std::byte memory[65536];
  for (int team = 0; std::int64_t{team} * team_items < items; ++team) {
    std::barrier<> meeting(several_threads::size);
    std::memset(memory, 0xa5, sizeof memory);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < several_threads::size; ++rank)
      threads.emplace_back([&, rank] { kernel(several_threads{meeting, memory, team, rank}); });
    for (auto& thread : threads) thread.join();
  }
}

template <class Index, class Bounds>
using source_rows = kernels::index_rows<Index, kernels::looked_at<Bounds>>;

/// Runs `kernel` on rows of some units by some teams, and returns the number of bad indices that they report.
template <class Kernel, class Bounds>
std::uint64_t run(const Kernel& kernel, const std::vector<std::int64_t>& indices, std::size_t rows,
                  std::int64_t units, int teams) {
  detail::index_report findings;
  unsigned int raised = 0;
  const auto n = static_cast<std::int64_t>(indices.size());
  using named_rows = kernels::index_rows<std::int64_t, Bounds>;
  const named_rows named{indices.data(), static_cast<std::int64_t>(rows), {&findings, &raised}};
  using checked = kernels::checked_rows<Kernel, named_rows>;
  const checked rows_of_batch{kernel, named, n, units, teams};
  run_teams(rows_of_batch, 1, teams);
  return findings.out_of_range;
}

template <class Bounds>
void check_moved_and_added(std::size_t n, std::size_t width, int teams) {
  CAPTURE(n, width, teams, Bounds::name);
  auto random = generator(211);
  const std::size_t rows = 2 * n + 3;
  auto indices = unique_indices<std::int64_t>(random, n, rows);
  const auto values = ferry_test::values<float>(random, n * width);
  const auto before = ferry_test::values<float>(random, rows * width);
  const auto stride = static_cast<std::int64_t>(width), positions = static_cast<std::int64_t>(n);
  const auto expected = [&](bool adds) {
    auto table = before;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c) {
        auto& element = table[static_cast<std::size_t>(indices[p]) * width + c];
        element = adds ? element + values[p * width + c] : values[p * width + c];
      }
    return table;
  };
  for (const bool is_bad : {false, true}) {
    const std::int64_t index = is_bad ? std::exchange(indices[n / 2], -7) : indices[n / 2];
    const source_rows<std::int64_t, Bounds> source{indices.data(), static_cast<std::int64_t>(rows), {}};
    auto moved = before, added = before;
    using destinations = kernels::index_destinations<std::int64_t, kernels::looked_at<Bounds>>;
    const bool wide = width % 4 == 0;
    const std::int64_t units = wide ? stride / 4 : stride;
    const kernels::gather_rows<detail::unit_of<float>, destinations> move{
        values.data(), units, moved.data(), units, detail::fast_divisor(units), {source}, wide};
    const auto bad_moves =
        run<std::remove_const_t<decltype(move)>, Bounds>(move, indices, rows, units, teams);
    const auto add = detail::apply_kernel<float, kernels::single_tile, ferry::duplicates::assume_unique>(
        source, positions, values.data(), stride, stride, kernels::add_row<float>{added.data(), stride});
    const auto bad_sums = run<std::remove_const_t<decltype(add)>, Bounds>(add, indices, rows, stride, teams);
    CHECK(bad_moves == (is_bad ? 1 : 0));
    CHECK(bad_sums == (is_bad ? 1 : 0));
    if (is_bad) {
      CHECK(moved == before);
      CHECK(added == before);
      indices[n / 2] = index;
    } else {
      CHECK(moved == expected(false));
      CHECK(added == expected(true));
    }
  }
}

TEST_CASE("teams that check indices have several items under way", "[bounds]") {
  for (const int teams : {1, 3})
    for (const std::size_t n : {1u, 2u, 9u, 100u})
      for (const std::size_t width : {1u, 3u, 8u, 13u, 29u, 120u})
        check_moved_and_added<ferry::bounds::check>(n, width, teams);
}

}  // namespace ferry_test::checked_rows_test
