// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/sum_by_team.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/rows/detail/sum_pieces.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

/// The rows of a small batch and their positions without a sort: every position is looked up among a team's
/// rows.
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

  KOKKOS_FUNCTION static bool blocked() { return false; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const {
    const std::int64_t place = i - first;
    return {rows[place], begin[place], begin[place] + count[place]};
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

/// How a batch is cut for teams.
struct search_shape {
  static constexpr int most = 4096;        ///< positions of a batch
  static constexpr int most_items = 16;    ///< items of a team
  static constexpr int team_size = 512;    ///< 32 threads for an item, as rows of 128 floats have tiles
  static constexpr int most_warps = 16;    ///< of a team
  static constexpr int slots = 512;        ///< of a team's hash table, a power of two
  static constexpr int sum_bytes = 24576;  ///< for sums of pieces

  /// Items of a team: fewer if there is a team for each multiprocessor, because they end sooner.
  static constexpr int items_of_team(std::int64_t items) { return items <= 1024 ? 8 : most_items; }
  static constexpr int teams(std::int64_t items) {
    return static_cast<int>((items + items_of_team(items) - 1) / items_of_team(items));
  }
};

/// A team's view of the batch.
struct searched_batch {
  int item_in[search_shape::slots];         ///< a hash table of the team's rows; -1: an empty slot
  std::uint16_t order[search_shape::most];  ///< the positions of the team's rows
  /// For each warp, and each item: its positions so far, then the places of those of the warps before.
  std::uint16_t next[search_shape::most_warps][search_shape::most_items];
  std::int64_t rows[search_shape::most_items];  ///< those of the items, see found_rows
  int begin[search_shape::most_items];
  int count[search_shape::most_items];
  int before[search_shape::most_items];  ///< positions of the row before those of the team
  team_share shares[search_shape::most_items];
  bool is_later[search_shape::most_items];  ///< a position before that of the item names its row
  bool has_shares;                          ///< true if teams share a row
  int shares_of_team;                       ///< that are not empty
  int bad;                                  ///< bad indices
  int order_size;                           ///< positions in the order
  alignas(16) unsigned char sums[search_shape::sum_bytes];
};
/// The neighbouring positions that a warp of a team looks up.
struct warp_positions {
  int lanes;
  int warp, lane;
  int begin, end;

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION warp_positions(const Team& team, int positions)
      : lanes(Team::lanes), warp(team.team_rank() / Team::lanes), lane(team.team_rank() % Team::lanes) {
    const int warps = team.team_size() / lanes;
    const int size = ((positions + warps - 1) / warps + lanes - 1) / lanes * lanes;
    begin = warp * size;
    end = begin + size < positions ? begin + size : positions;
  }
  /// The position of the lane in round k from p on.
  KOKKOS_FORCEINLINE_FUNCTION int position(int p, int k) const { return p + k * lanes + lane; }
};

/// Finds the rows of a batch and runs `kernel`, a kernel on found_rows, in one launch. All teams look at all
/// indices, so each knows before it writes whether one is bad. The positions of a row come in the order of
/// the batch, as after a stable sort.
///
/// Device mapping: a team has some neighbouring items, and a small hash table of their rows. Each warp looks
/// the rows of neighbouring positions up, a lane for each position; few batches name a row often, so most
/// positions miss. The warps count the positions of each item, then sum the counts of the warps before, and
/// so know the place of each position in the order of the items. At last all threads run the kernel on the
/// team's items, one work item each. The teams that name a row often share its tiles, see team_share.
template <class Kernel, class Named>
struct search_rows : search_shape {
  Kernel kernel;  ///< its source is that of the team
  Named named;    ///< an index_rows
  std::int64_t items;
  std::int64_t per_item;
  int team_items = items_of_team(items);

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& batch = team.template shared<searched_batch>();
    const auto positions = static_cast<int>(items);
    const int first = team.league_rank() * team_items;
    const int size = positions - first < team_items ? positions - first : team_items;
    const warp_positions part(team, positions);
    // Under way while the table is made.
    constexpr int round = at_once * Team::lanes;
    std::int64_t row[at_once];
    load(part, part.begin, row);
    clear(team, batch, first, size);
    team.team_barrier();
    for (int item = team.team_rank(); item < size; item += team.team_size()) enter(batch, item);
    team.team_barrier();
    int item[at_once];
    for (int p = part.begin; p < part.end; p += round) {
      if (p != part.begin) load(part, p, row);
      look_up(batch, part, first, p, row, item);
      for_hits(team, part, p, item, [&](int, int hit) { for_peers(team, batch, part, hit, [](int) {}); });
      if (Named::reports && has_bad(part, p, row)) report(team, batch, part, p);
    }
    team.team_barrier();
    if (batch.bad != 0) return;
    for (int k = team.team_rank(); k < size; k += team.team_size())
      allot(batch, k, team.team_size() / Team::lanes);
    team.team_barrier();
    for (int p = part.begin; p < part.end; p += round) {
      if (part.end - part.begin > round) {
        load(part, p, row);
        look_up(batch, part, first, p, row, item);
      }
      for_hits(team, part, p, item, [&](int position, int hit) {
        for_peers(team, batch, part, hit, [&](int number) {
          if (batch.count[hit] != 0)
            batch.order[batch.begin[hit] + number] = static_cast<std::uint16_t>(position);
          if (position == first + hit) batch.before[hit] = number;
        });
      });
    }
    team.team_barrier();
    Kernel team_kernel = kernel;
    team_kernel.source = {batch.rows, batch.begin, batch.count, batch.order, first};
    if constexpr (sums)
      if (batch.has_shares && !kernel.operation.is_refused())
        update_shares(team, batch, team_kernel, first, size);
    for (std::int64_t i = first * per_item + team.team_rank(); i < (first + size) * per_item;
         i += team.team_size())
      team_kernel(i);
  }

 private:
  static constexpr int at_once = 8;  ///< loads of a thread under way
  static constexpr bool sums = Kernel::duplicates_type::combines;

  /// Rows of the positions from p on. Nothing is reported, or each load would wait for the last one.
  KOKKOS_FORCEINLINE_FUNCTION void load(const warp_positions& part, int p,
                                        std::int64_t (&row)[at_once]) const {
    for (int k = 0; k < at_once; ++k) {
      const int position = part.position(p, k);
      row[k] = position < part.end ? named.row(position, false) : 0;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool has_bad(const warp_positions& part, int p,
                                                  const std::int64_t (&row)[at_once]) {
    bool bad = false;
    for (int k = 0; k < at_once; ++k) bad = bad || (part.position(p, k) < part.end && row[k] < 0);
    return bad;
  }
  /// Notes bad indices. The first team reports them for all.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void report(const Team& team, searched_batch& batch, const warp_positions& part,
                                          int p) const {
    batch.bad = 1;
    if (team.league_rank() != 0) return;
    FERRY_LOOP_OF_DEVICE
    for (int k = 0; k < at_once; ++k)
      if (part.position(p, k) < part.end) named.row(part.position(p, k), true);
  }
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void clear(const Team& team, searched_batch& batch, int first, int size) const {
    for (int item = team.team_rank(); item < size; item += team.team_size()) {
      batch.rows[item] = named.row(first + item, false);
      batch.is_later[item] = false;
    }
    for (int slot = team.team_rank(); slot < slots; slot += team.team_size()) batch.item_in[slot] = -1;
    for (int k = team.team_rank(); k < most_warps * most_items; k += team.team_size())
      batch.next[k / most_items][k % most_items] = 0;
    if (team.team_rank() == 0) {
      batch.bad = batch.order_size = 0;
      batch.has_shares = false;
      batch.shares_of_team = 0;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static int slot_of(std::int64_t row) {
    const std::uint64_t mixed = static_cast<std::uint64_t>(row) * 0x9e3779b97f4a7c15u;
    return static_cast<int>(mixed >> 40) % slots;
  }
  /// Enters the row of an item into the table, if no item before it has the row.
  KOKKOS_FORCEINLINE_FUNCTION static void enter(searched_batch& batch, int item) {
    const std::int64_t row = batch.rows[item];
    if (row < 0) return;
    bool is_later = false;
    for (int rival = 0; rival < item; ++rival) is_later = is_later || batch.rows[rival] == row;
    batch.is_later[item] = is_later;
    if (is_later) return;
    int slot = slot_of(row);
    while (Kokkos::atomic_compare_exchange(&batch.item_in[slot], -1, item) != -1) slot = (slot + 1) % slots;
  }
  /// The item that has a row; -1 if none does.
  KOKKOS_FORCEINLINE_FUNCTION static int item_with(const searched_batch& batch, std::int64_t row) {
    for (int slot = slot_of(row);; slot = (slot + 1) % slots) {
      const int item = batch.item_in[slot];
      if (item < 0 || batch.rows[item] == row) return item;
    }
  }
  /// The items that have these rows; -1 if none does, or if only the first or last value of a row counts and
  /// the item comes after the position.
  KOKKOS_FORCEINLINE_FUNCTION static void look_up(searched_batch& batch, const warp_positions& part,
                                                  int first, int p, const std::int64_t (&row)[at_once],
                                                  int (&item)[at_once]) {
    for (int k = 0; k < at_once; ++k) {
      const int position = part.position(p, k);
      item[k] = position < part.end && row[k] >= 0 ? item_with(batch, row[k]) : -1;
      if (item[k] < 0 || position >= first) continue;
      batch.is_later[item[k]] = true;
      if (!sums) item[k] = -1;
    }
  }
  /// Calls act(position, item) by all lanes of a warp for each round in which some position has an item.
  template <class Team, class Act>
  KOKKOS_FORCEINLINE_FUNCTION static void for_hits(const Team& team, const warp_positions& part, int p,
                                                   const int (&item)[at_once], const Act& act) {
    for (int k = 0; k < at_once; ++k)
      if (team.vote(item[k] >= 0) != 0) act(part.position(p, k), item[k]);
  }
  /// The lanes of a warp that pass one item, at least 0, count themselves. Calls act(number) for each, with
  /// the number of its positions in the lanes and the rounds before.
  template <class Team, class Act>
  KOKKOS_FORCEINLINE_FUNCTION static void for_peers(const Team& team, searched_batch& batch,
                                                    const warp_positions& part, int item, const Act& act) {
    const std::uint32_t peers = team.peers(item);
    const std::uint32_t lower = peers & ((std::uint32_t{1} << part.lane) - 1);
    const int offset = item >= 0 ? batch.next[part.warp][item] : 0;
    if (item >= 0) act(offset + bits_in(lower));
    team.warp_barrier();
    if (item >= 0 && lower == 0)
      batch.next[part.warp][item] = static_cast<std::uint16_t>(offset + bits_in(peers));
    team.warp_barrier();
  }
  /// Gives an item its places in the order, and each warp its own of these.
  KOKKOS_FORCEINLINE_FUNCTION static void allot(searched_batch& batch, int item, int warps) {
    int count = 0;
    for (int warp = 0; warp < warps; ++warp) {
      const int positions = batch.next[warp][item];
      batch.next[warp][item] = static_cast<std::uint16_t>(count);
      count += positions;
    }
    if (sums && count >= team_share::fewest) {
      batch.has_shares = true;
    } else if (batch.is_later[item] || batch.rows[item] < 0) {
      batch.rows[item] = -1;
      count = 0;
    }
    batch.begin[item] = Kokkos::atomic_fetch_add(&batch.order_size, count);
    batch.count[item] = count;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int bits_in(std::uint32_t mask) {
    return Kokkos::Experimental::popcount_builtin(mask);
  }

  /// Updates the team's shares of the rows that teams share, and takes these from the items.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION static void update_shares(const Team& team, searched_batch& batch,
                                                        const Kernel& kernel, int first, int size) {
    for (int item = team.team_rank(); item < size; item += team.team_size()) {
      const int count = batch.count[item];
      if (count < team_share::fewest) continue;
      const auto* const order = batch.order + batch.begin[item];
      int end = batch.before[item];
      while (end < count && order[end] < first + size) ++end;
      const team_share share(batch.rows[item], first + item, batch.begin[item], count, batch.before[item],
                             end, static_cast<int>(kernel.tiles.divisor()));
      if (share.tiles > 0) batch.shares[Kokkos::atomic_fetch_add(&batch.shares_of_team, 1)] = share;
      batch.rows[item] = -1;
    }
    team.team_barrier();
    update_by_team(team, batch.sums, kernel, batch.shares, batch.shares_of_team);
  }
};

}  // namespace ferry::kernels
