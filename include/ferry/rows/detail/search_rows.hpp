// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

/// The rows of a small batch and their positions without a sort: every position is compared with all others.
namespace ferry::kernels {

/// What a search has found; a source of the row kernels. Item i is position i: it has the row that it names
/// if it is the first position to do so, and no row otherwise. The arrays are written by the team that reads
/// them.
struct found_rows {
  std::int64_t* rows = nullptr;   ///< [items]
  std::int32_t* begin = nullptr;  ///< [items]
  std::int32_t* count = nullptr;  ///< [items]
  std::int32_t* order = nullptr;  ///< [teams x items] for each team its positions
  static constexpr const void* long_sums = nullptr;
  static constexpr std::int64_t long_stride = 0;

  KOKKOS_FUNCTION static bool blocked() { return false; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const {
    return {rows[i], begin[i], std::int64_t{begin[i]} + count[i]};
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

/// What a team knows of the batch.
struct searched_batch {
  static constexpr int most = 2048;  ///< positions

  std::int64_t rows[most];
  int bad;    ///< bad indices
  int taken;  ///< places of the team's part of the order
};

/// How a batch is cut for teams.
struct search_shape {
  static constexpr int team_size = 256;
  static constexpr int each = 8;  ///< items of a team

  static constexpr int teams(std::int64_t items) { return static_cast<int>((items + each - 1) / each); }
};

/// Finds the rows of a batch and runs `kernel`, a kernel on found_rows, in one launch. All teams look at all
/// indices, so each knows before it writes whether one is bad. The positions of a row come in the order of
/// the batch, as after a stable sort.
///
/// Device mapping: a team has `each` neighbouring items. All its threads resolve the indices of the batch into
/// shared memory. Then a warp looks for the positions of one item at a time, a lane for each position, and
/// votes. At last all threads run the kernel on the team's items, one work item each.
template <class Kernel, class Named>
struct search_rows : search_shape {
  Kernel kernel;
  found_rows found;
  Named named;  ///< an index_rows
  std::int64_t items;
  std::int64_t per_item;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& batch = team.template shared<searched_batch>();
    if (team.team_rank() == 0) batch.bad = batch.taken = 0;
    team.team_barrier();
    for (std::int64_t p = team.team_rank(); p < items; p += team.team_size()) {
      // The first team reports for all.
      batch.rows[p] = named.row(p, team.league_rank() == 0);
      if (Named::reports && batch.rows[p] < 0) batch.bad = 1;
    }
    team.team_barrier();
    if (batch.bad != 0) return;
    const std::int64_t first = std::int64_t{team.league_rank()} * each;
    const std::int64_t last = first + each < items ? first + each : items;
    for (std::int64_t item = first + team.team_rank() / Team::lanes; item < last;
         item += team.team_size() / Team::lanes)
      look_for(team, batch, item);
    team.team_barrier();
    for (std::int64_t i = first * per_item + team.team_rank(); i < last * per_item; i += team.team_size())
      kernel(i);
  }

 private:
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void look_for(const Team& team, searched_batch& batch,
                                            std::int64_t item) const {
    const int lane = team.team_rank() % Team::lanes;
    const std::int64_t row = batch.rows[item];
    std::int64_t begin = -1;
    int count = 0;
    if (row >= 0 && !is_named(team, batch, row, 0, item)) {
      for_each_vote(team, batch, row, item,
                    [&](std::int64_t, std::uint32_t same) { count += bits_in(same); });
      if (lane == 0) begin = team.league_rank() * items + Kokkos::atomic_fetch_add(&batch.taken, count);
      begin = team.from_first_lane(begin);
      std::int64_t to = begin;
      for_each_vote(team, batch, row, item, [&](std::int64_t at, std::uint32_t same) {
        if ((same >> lane & 1) != 0)
          found.order[to + bits_in(same & ((std::uint32_t{1} << lane) - 1))] =
              static_cast<std::int32_t>(at + lane);
        to += bits_in(same);
      });
    }
    if (lane != 0) return;
    found.rows[item] = begin < 0 ? -1 : row;
    found.begin[item] = static_cast<std::int32_t>(begin);
    found.count[item] = count;
  }
  /// Calls act(at, votes) for each run of positions from at on that has some of the row, from `from` on.
  template <class Team, class Act>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_vote(const Team& team, const searched_batch& batch,
                                                 std::int64_t row, std::int64_t from, const Act& act) const {
    const int lane = team.team_rank() % Team::lanes;
    for (std::int64_t at = from; at < items; at += Team::lanes) {
      const std::int64_t p = at + lane;
      const std::uint32_t same = team.vote(p < items && batch.rows[p] == row);
      if (same != 0) act(at, same);
    }
  }
  /// Whether a position of [from, to) names the row.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION bool is_named(const Team& team, const searched_batch& batch, std::int64_t row,
                                            std::int64_t from, std::int64_t to) const {
    const int lane = team.team_rank() % Team::lanes;
    for (std::int64_t at = from; at < to; at += Team::lanes) {
      const std::int64_t p = at + lane;
      if (team.vote(p < to && batch.rows[p] == row) != 0) return true;
    }
    return false;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int bits_in(std::uint32_t mask) {
    return Kokkos::Experimental::popcount_builtin(mask);
  }
};

}  // namespace ferry::kernels
