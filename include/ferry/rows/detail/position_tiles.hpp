// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

/// Atomic additions to rows that several positions of a batch name. Additions to one address follow one
/// another, so a row that half of the batch names would decide the time. Therefore teams sum the values of
/// neighbouring positions first.
namespace ferry::kernels {

/// Runs an apply_rows kernel whose items are positions and whose operation adds atomically.
///
/// Device mapping: a team takes `size` neighbouring positions at a time and sorts them by their rows, a
/// thread for each, which compares its row with the others. Then all threads stride over (run of `run`
/// sorted positions, tile), row-major. A thread adds once for each row in its run. All have the same number
/// of values to read, whatever the rows are.
///
/// Rows of at most `few_tiles` tiles: `run` is 1. Runs would leave most threads idle, so threads stride over
/// (position, tile), and the first position of a row, or of `most_run` of a row, adds the others. A position
/// is compared with `narrow_part` others, because the comparisons would take longer than the additions. Wider
/// rows that come often take less time by runs.
template <class Kernel>
struct position_tiles {
  static constexpr int most = 256;                                    ///< positions of a team
  static constexpr int least_run = 4, most_run = 16;                  ///< positions of a run
  static constexpr int narrow_part = 64;                              ///< positions that are sorted at once
  static constexpr std::int64_t few_tiles = 4;                        ///< of a row
  static constexpr int at_once = Kernel::tile::elements > 4 ? 2 : 4;  ///< values of a thread under way

  Kernel kernel;
  std::int64_t positions;
  int size;
  int run;
  int teams;

  struct batch_part {
    std::int64_t row[most];
    std::int64_t sorted[most];  ///< rows
    std::uint8_t index[most];   ///< of the sorted positions in the part
  };
  static_assert(most <= 256, "ferry: a byte holds an index");
  using shared_memory = batch_part;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& part = team.template shared<batch_part>();
    if (kernel.source.blocked() || kernel.operation.is_refused()) return;
    for (std::int64_t first = std::int64_t{team.league_rank()} * size; first < positions;
         first += std::int64_t{teams} * size) {
      const int count = static_cast<int>(positions - first < size ? positions - first : size);
      for (int k = team.team_rank(); k < count; k += team.team_size())
        part.row[k] = kernel.source.row(first + k, false);
      team.team_barrier();
      for (int k = team.team_rank(); k < count; k += team.team_size()) {
        const int begin = run > 1 ? 0 : k / narrow_part * narrow_part;
        sort(part, k, begin, run > 1 || count - begin < narrow_part ? count : begin + narrow_part);
      }
      team.team_barrier();
      const std::int64_t items = (count + run - 1) / run * kernel.tiles.divisor();
      for (std::int64_t i = team.team_rank(); i < items; i += team.team_size()) {
        const auto number = static_cast<int>(kernel.tiles.quotient(i));
        const int begin = number * run;
        const int end =
            run > 1 ? (begin + run < count ? begin + run : count) : end_of_row(part, begin, count);
        if (begin < end) add_run(part, first, begin, end, i - number * kernel.tiles.divisor());
      }
      team.team_barrier();
    }
  }

 private:
  /// Sorts position k among those of [begin, end): by its row, positions of a row in the order of the batch.
  KOKKOS_FORCEINLINE_FUNCTION static void sort(batch_part& part, int k, int begin, int end) {
    const std::int64_t row = part.row[k];
    int rank = begin;
    for (int rival = begin; rival < end; ++rival) {
      const std::int64_t rival_row = part.row[rival];
      rank += rival_row < row || (rival_row == row && rival < k) ? 1 : 0;
    }
    part.sorted[rank] = row;
    part.index[rank] = static_cast<std::uint8_t>(k);
  }
  /// The end of the positions that sorted position k adds, in the `most_run` to which it belongs; k if
  /// another one adds it.
  KOKKOS_FORCEINLINE_FUNCTION static int end_of_row(const batch_part& part, int k, int count) {
    const std::int64_t row = part.sorted[k];
    if (k % most_run != 0 && part.sorted[k - 1] == row) return k;
    const int last = k / most_run * most_run + most_run < count ? k / most_run * most_run + most_run : count;
    int end = k + 1;
    while (end < last && part.sorted[end] == row) ++end;
    return end;
  }
  KOKKOS_FORCEINLINE_FUNCTION void add_run(const batch_part& part, std::int64_t first, int k, int end,
                                           std::int64_t number) const {
    using tile = typename Kernel::tile;
    using compute = typename Kernel::compute;
    const std::int64_t column = number * tile::elements;
    const auto* const in_column = kernel.values + first * kernel.values_stride + column;
    compute sum[tile::elements] = {};
    bool begins = true;
    for (; k < end; k += at_once) {
      compute value[at_once][tile::elements];
      for (int j = 0; j < at_once; ++j)
        if (k + j < end)
          load_tile<tile>(value[j], in_column + part.index[k + j] * kernel.values_stride, tile::elements);
      for (int j = 0; j < at_once && k + j < end; ++j) {
        for (int e = 0; e < tile::elements; ++e) sum[e] = begins ? value[j][e] : sum[e] + value[j][e];
        const std::int64_t row = part.sorted[k + j];
        begins = k + j + 1 == end || part.sorted[k + j + 1] != row;
        if (begins && row >= 0) {
          typename Kernel::operation_type::template held<tile, compute> inputs;
          kernel.operation.finish(inputs, first, row, column, sum, tile::elements);
        }
      }
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail::schedule {

/// Neighbouring positions by teams, see kernels::position_tiles.
struct position_tiles {
  template <class Exec, class Functor>
  void enqueue(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
               const Functor& functor) const {
    using kernel = kernels::position_tiles<Functor>;
    const auto& tuning = execution_backend<Exec>::tuning(exec);
    // Short runs if long ones would leave threads of the device idle.
    const std::int64_t threads_of_device = tuning.teams_that_search * 512;
    const auto fit = std::bit_floor(static_cast<std::uint64_t>(items * per_item / threads_of_device) | 1);
    const auto run =
        per_item <= kernel::few_tiles
            ? 1
            : static_cast<int>(std::clamp<std::uint64_t>(fit, kernel::least_run, kernel::most_run));
    const int threads = tuning.flat_team_size;
    const auto runs = static_cast<int>(std::clamp<std::int64_t>(threads / per_item, 1, kernel::most / run));
    const int size = run * runs;
    const std::int64_t parts = (items + size - 1) / size;
    const auto teams = static_cast<int>(std::min(parts, tuning.most_flat_teams));
    const tool_kernel reported(exec, label);
    execution_backend<Exec>::launch_blocks(exec, label, teams, threads,
                                           kernel{functor, items, size, run, teams});
  }
};

}  // namespace ferry::detail::schedule
