// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

/// The rows of a small batch and their positions without a sort: every position is compared with all others.
namespace ferry::kernels {

/// Findings of a search, a source of the row kernels. Item i is position i: it has the row that it names
/// if it is the first position to do so, and no row otherwise. The arrays lie in the memory of the team that
/// has the item.
struct found_rows {
  const std::int64_t* rows = nullptr;  ///< of the team's items, the first of which is `first`
  const int* begin = nullptr;
  const int* count = nullptr;
  const std::uint16_t* order = nullptr;  ///< the positions of the rows
  std::int64_t first = 0;
  static constexpr bool sums_long = true;

  KOKKOS_FUNCTION static bool blocked() { return false; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const {
    const std::int64_t place = i - first;
    return {rows[place], begin[place], begin[place] + count[place]};
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

/// How a batch is cut for teams.
struct search_shape {
  static constexpr int team_size = 256;
  static constexpr int team_items = 8;  ///< items of a team
  static constexpr int most = 4096;     ///< positions of a batch

  static constexpr int teams(std::int64_t items) {
    return static_cast<int>((items + team_items - 1) / team_items);
  }
};

/// A team's view of the batch.
struct searched_batch {
  std::int64_t named[search_shape::most];       ///< the row of each position
  std::uint16_t order[search_shape::most];      ///< the positions of the team's rows
  std::int64_t rows[search_shape::team_items];  ///< those of the team's items, see found_rows
  int begin[search_shape::team_items];
  int count[search_shape::team_items];
  int bad;         ///< bad indices
  int order_size;  ///< positions in the order
};

/// Finds the rows of a batch and runs `kernel`, a kernel on found_rows, in one launch. All teams look at all
/// indices, so each knows before it writes whether one is bad. The positions of a row come in the order of
/// the batch, as after a stable sort.
///
/// Device mapping: a team has `team_items` neighbouring items. All its threads resolve the indices of the
/// batch into shared memory. Then a warp looks for the positions of one item at a time, a lane for each
/// position, and votes. At last all threads run the kernel on the team's items, one work item each.
template <class Kernel, class Named>
struct search_rows : search_shape {
  Kernel kernel;  ///< its source is that of the team
  Named named;    ///< an index_rows
  std::int64_t items;
  std::int64_t per_item;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& batch = team.template shared<searched_batch>();
    if (team.team_rank() == 0) batch.bad = batch.order_size = 0;
    team.team_barrier();
    resolve(team, batch);
    team.team_barrier();
    if (batch.bad != 0) return;
    const std::int64_t first = std::int64_t{team.league_rank()} * team_items;
    const std::int64_t last = first + team_items < items ? first + team_items : items;
    for (int place = team.team_rank() / Team::lanes; place < last - first;
         place += team.team_size() / Team::lanes)
      look_for(team, batch, static_cast<int>(first) + place, place);
    team.team_barrier();
    Kernel team_kernel = kernel;
    team_kernel.source = {batch.rows, batch.begin, batch.count, batch.order, first};
    for (std::int64_t i = first * per_item + team.team_rank(); i < last * per_item; i += team.team_size())
      team_kernel(i);
  }

 private:
  static constexpr int at_once = 4;  ///< loads of a thread under way

  /// The first team reports bad indices for all.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void resolve(const Team& team, searched_batch& batch) const {
    const bool records = team.league_rank() == 0;
    for (std::int64_t p = team.team_rank(); p < items; p += at_once * team.team_size()) {
      std::int64_t row[at_once];
      for (int k = 0; k < at_once; ++k) {
        const std::int64_t position = p + k * team.team_size();
        row[k] = position < items ? named.row(position, records) : 0;
      }
      for (int k = 0; k < at_once; ++k) {
        const std::int64_t position = p + k * team.team_size();
        if (position < items) batch.named[position] = row[k];
        if (Named::reports && row[k] < 0) batch.bad = 1;
      }
    }
  }
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void look_for(const Team& team, searched_batch& batch, int item,
                                            int place) const {
    const int lane = team.team_rank() % Team::lanes;
    const std::int64_t row = batch.named[item];
    int begin = 0, count = 0;
    if (row >= 0 && !is_named(team, batch, row, item)) {
      for_each_vote(team, batch, row, item, [&](int, std::uint32_t same) { count += bits_in(same); });
      if (lane == 0) begin = Kokkos::atomic_fetch_add(&batch.order_size, count);
      begin = team.from_first_lane(begin);
      if (count == 1) {
        if (lane == 0) batch.order[begin] = static_cast<std::uint16_t>(item);
      } else {
        int next = begin;
        for_each_vote(team, batch, row, item, [&](int first, std::uint32_t same) {
          if ((same >> lane & 1) != 0)
            batch.order[next + bits_in(same & ((std::uint32_t{1} << lane) - 1))] =
                static_cast<std::uint16_t>(first + lane);
          next += bits_in(same);
        });
      }
    }
    if (lane != 0) return;
    batch.rows[place] = count == 0 ? -1 : row;
    batch.begin[place] = begin;
    batch.count[place] = count;
  }
  /// The votes of the warp on which of the positions from first + k * lanes on name the row, each below
  /// `end`.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void vote(const Team& team, const searched_batch& batch, std::int64_t row,
                                        int first, int end, std::uint32_t (&votes)[at_once]) const {
    bool same[at_once];
    for (int k = 0; k < at_once; ++k) {
      const int p = first + k * Team::lanes + team.team_rank() % Team::lanes;
      same[k] = p < end && batch.named[p] == row;
    }
    for (int k = 0; k < at_once; ++k) votes[k] = team.vote(same[k]);
  }
  /// Calls act(first, votes) for each run of positions from `first` on in which some name the row; from item
  /// on.
  template <class Team, class Act>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_vote(const Team& team, const searched_batch& batch,
                                                 std::int64_t row, int item, const Act& act) const {
    const int end = static_cast<int>(items);
    for (int first = item; first < end; first += at_once * Team::lanes) {
      std::uint32_t votes[at_once];
      vote(team, batch, row, first, end, votes);
      for (int k = 0; k < at_once; ++k)
        if (votes[k] != 0) act(first + k * Team::lanes, votes[k]);
    }
  }
  /// True if a position before the item names the row.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION bool is_named(const Team& team, const searched_batch& batch, std::int64_t row,
                                            int item) const {
    for (int first = 0; first < item; first += at_once * Team::lanes) {
      std::uint32_t votes[at_once], any = 0;
      vote(team, batch, row, first, item, votes);
      for (int k = 0; k < at_once; ++k) any |= votes[k];
      if (any != 0) return true;
    }
    return false;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int bits_in(std::uint32_t mask) {
    return Kokkos::Experimental::popcount_builtin(mask);
  }
};

}  // namespace ferry::kernels
