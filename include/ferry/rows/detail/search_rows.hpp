// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/prefetch.hpp>
#include <ferry/rows/detail/row_operations.hpp>
#include <ferry/rows/detail/searched_batch.hpp>
#include <ferry/rows/detail/sum_by_team.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// The rows of a small batch and their positions without a sort: every position is looked up among a team's
/// rows.
namespace ferry::kernels {

/// Finds the rows of a batch and runs `kernel`, a kernel on found_rows, in one launch. All teams look at all
/// indices, so each knows before it writes whether one is bad. The positions of a row come in the order of
/// the batch, as after a stable sort.
///
/// Device mapping: a team has some neighbouring items, and a small hash table of their rows. Each warp tests
/// the rows of neighbouring positions against a bit for each hash, a lane for each position; few batches name
/// a row often, so most positions miss. It lists the others and looks them up in the table. The warps count
/// the positions of each item, then sum the counts of the warps before, and so know the place of each
/// position in the order of the items. At last all threads run the kernel on the team's items, one work item
/// each. The teams that name a row often share its tiles, see team_share.
template <class Kernel, class Named>
struct search_rows : search_shape {
  Kernel kernel;  ///< its source is that of the team
  Named named;    ///< an index_rows
  std::int64_t items;
  std::int64_t per_item;
  int team_items;
  bool values_in_device;

  [[nodiscard]] int teams() const { return static_cast<int>((items + team_items - 1) / team_items); }
  [[nodiscard]] std::size_t bytes() const {
    return searched_batch::bytes(static_cast<int>(items), bytes_of_tile);
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& batch = team.template dynamic_shared<searched_batch>();
    const auto positions = static_cast<int>(items);
    const int first = team.league_rank() * team_items;
    const int size = positions - first < team_items ? positions - first : team_items;
    const warp_positions part(team, positions);
    // Under way while the table is made.
    std::int64_t row[at_once];
    load(part, part.begin, row);
    clear(team, batch, first, size);
    team.team_barrier();
    for (int item = team.team_rank(); item < size; item += team.team_size()) enter(batch, item);
    team.team_barrier();
    prefetch(team, batch, first, size);
    auto* const list = batch.list(positions) + part.begin;
    const int hits = look_up(team, batch, part, first, row, list);
    team.team_barrier();
    if (batch.bad != 0) return;
    for (int k = team.team_rank(); k < size; k += team.team_size())
      allot(batch, k, team.team_size() / Team::lanes);
    team.team_barrier();
    for (int h = part.lane; h < hits; h += Team::lanes) {
      const search_hit hit(list[h]);
      const int position = part.begin + hit.place(), item = hit.item();
      const int number = batch.next[part.warp][item] + hit.number();
      if (batch.count[item] != 0)
        batch.order()[batch.begin[item] + number] = static_cast<std::uint16_t>(position);
      if (position == first + item) batch.before[item] = number;
    }
    team.team_barrier();
    Kernel team_kernel = kernel;
    team_kernel.source = {batch.rows, batch.begin, batch.count, batch.order(), first};
    if constexpr (sums)
      if (batch.has_shares && !kernel.operation.is_refused())
        update_shares(team, batch, team_kernel, first, size);
    for (std::int64_t i = first * per_item + team.team_rank(); i < (first + size) * per_item;
         i += team.team_size())
      team_kernel(i);
  }

 private:
  static constexpr int at_once = 8;  ///< loads of a thread under way
  static constexpr int groups = 4;   ///< candidates of a thread whose rows are loaded at once
  static constexpr bool sums = Kernel::duplicates_type::combines;
  static constexpr int bytes_of_tile =
      Kernel::tile::elements * static_cast<int>(sizeof(typename Kernel::compute));
  static_assert(bytes_of_tile <= most_bytes_of_tile);

  /// Rows of the positions from p on. Nothing is reported, or each load would wait for the last one.
  KOKKOS_FORCEINLINE_FUNCTION void load(const warp_positions& part, int p,
                                        std::int64_t (&row)[at_once]) const {
    for (int k = 0; k < at_once; ++k) {
      const int position = part.position(p, k);
      row[k] = position < part.end ? named.row(position, false) : 0;
    }
  }
  /// Notes that a position of a warp has a bad index. The first team reports all of them.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void report(const Team& team, searched_batch& batch,
                                          const warp_positions& part) const {
    batch.bad = 1;
    if (team.league_rank() != 0) return;
    FERRY_LOOP_OF_DEVICE
    for (int position = part.begin + part.lane; position < part.end; position += part.lanes)
      named.row(position, true);
  }
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void clear(const Team& team, searched_batch& batch, int first, int size) const {
    for (int item = team.team_rank(); item < size; item += team.team_size()) {
      batch.rows[item] = named.row(first + item, false);
      batch.is_later[item] = false;
    }
    for (int word = team.team_rank(); word < filter_words; word += team.team_size()) batch.filter[word] = 0;
    for (int slot = team.team_rank(); slot < slots; slot += team.team_size()) batch.item_in[slot] = -1;
    for (int k = team.team_rank(); k < most_warps * most_items; k += team.team_size())
      batch.next[k / most_items][k % most_items] = 0;
    if (team.team_rank() == 0) {
      batch.bad = batch.order_size = 0;
      batch.has_shares = false;
      batch.shares_of_team = 0;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t hash_of(std::int64_t row) {
    return (static_cast<std::uint32_t>(row) ^ static_cast<std::uint32_t>(row >> 32)) * 0x9e3779b9u;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int slot_of(std::uint32_t hash) {
    return static_cast<int>(hash >> 23) % slots;
  }
  template <class Batch>
  KOKKOS_FORCEINLINE_FUNCTION static auto& filter_word(Batch& batch, std::uint32_t hash) {
    return batch.filter[(hash >> 24) % filter_words];
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t filter_bit(std::uint32_t hash) {
    return std::uint32_t{1} << (hash >> 19) % 32;
  }
  /// Enters the row of an item into the table, in place of that of a later item.
  KOKKOS_FORCEINLINE_FUNCTION static void enter(searched_batch& batch, int item) {
    const std::int64_t row = batch.rows[item];
    if (row < 0) return;
    const std::uint32_t hash = hash_of(row);
    Kokkos::atomic_or(&filter_word(batch, hash), filter_bit(hash));
    for (int slot = slot_of(hash);; slot = (slot + 1) % slots) {
      const int rival = Kokkos::atomic_compare_exchange(&batch.item_in[slot], -1, item);
      if (rival == -1) return;
      if (batch.rows[rival] != row) continue;
      const int tenant = Kokkos::atomic_fetch_min(&batch.item_in[slot], item);
      batch.is_later[tenant > item ? tenant : item] = true;
      return;
    }
  }
  /// The item that has a row; -1 if none does.
  KOKKOS_FORCEINLINE_FUNCTION static int item_with(const searched_batch& batch, std::int64_t row) {
    for (int slot = slot_of(hash_of(row));; slot = (slot + 1) % slots) {
      const int item = batch.item_in[slot];
      if (item < 0 || batch.rows[item] == row) return item;
    }
  }
  /// Prefetches the rows of the items and their own values: the device's memory is idle while the team looks
  /// positions up.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(const Team& team, const searched_batch& batch, int first,
                                            int size) const {
    using lines = device_lines<typename Kernel::compute>;
    const std::int64_t value_bytes = kernel.width * static_cast<std::int64_t>(sizeof(*kernel.values));
    for (int k = team.team_rank(); k < 2 * size; k += team.team_size()) {
      const bool takes_row = k < size;
      const int item = takes_row ? k : k - size;
      if (batch.rows[item] < 0) continue;
      if (takes_row) {
        if constexpr (!std::is_base_of_v<plain_operation, typename Kernel::operation_type>)
          kernel.operation.template prefetch<lines>(batch.rows[item], kernel.width);
      } else if (values_in_device) {
        lines::prefetch(kernel.values + (first + item) * kernel.values_stride, value_bytes);
      }
    }
  }
  /// Lists the positions of a warp whose rows items have, the first of which are loaded. Returns their
  /// number.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION int look_up(const Team& team, searched_batch& batch, const warp_positions& part,
                                          int first, std::int64_t (&row)[at_once],
                                          std::uint32_t* list) const {
    bool is_bad = false;
    int size = 0;
    for (int p = part.begin; p < part.end; p += at_once * Team::lanes) {
      if (p != part.begin) load(part, p, row);
      for (int k = 0; k < at_once; ++k) {
        const int position = part.position(p, k);
        const std::uint32_t hash = hash_of(row[k]);
        const bool exists = position < part.end;
        if (Named::reports) is_bad = is_bad || (exists && row[k] < 0);
        const bool may_hit = exists && row[k] >= 0 && (filter_word(batch, hash) & filter_bit(hash)) != 0;
        const std::uint32_t candidates = team.vote(may_hit);
        if (candidates == 0) continue;
        if (may_hit) list[size + bits_in(part.before(candidates))] = static_cast<std::uint32_t>(position);
        size += bits_in(candidates);
      }
    }
    if (Named::reports && is_bad) report(team, batch, part);
    team.warp_barrier();
    return count_hits(team, batch, part, first, list, size);
  }
  /// Counts the positions of a list for the items that have their rows, and keeps these in the list.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION int count_hits(const Team& team, searched_batch& batch,
                                             const warp_positions& part, int first, std::uint32_t* list,
                                             int size) const {
    int hits = 0;
    FERRY_LOOP_OF_DEVICE
    for (int c = 0; c < size; c += groups * Team::lanes) {
      int position[groups], item[groups];
      std::int64_t row[groups];
      for (int g = 0; g < groups; ++g) {
        const int candidate = part.position(c, g);
        position[g] = candidate < size ? static_cast<int>(list[candidate]) : -1;
      }
      team.warp_barrier();  // other lanes overwrite the list
      for (int g = 0; g < groups; ++g) row[g] = position[g] < 0 ? -1 : named.row(position[g], false);
      for (int g = 0; g < groups; ++g) {
        item[g] = position[g] < 0 ? -1 : item_with(batch, row[g]);
        if (item[g] < 0 || position[g] >= first) continue;
        batch.is_later[item[g]] = true;
        if (!sums) item[g] = -1;  // only the first or last value of a row counts
      }
      for (int g = 0; g < groups; ++g) {
        const bool counts = item[g] >= 0;
        const std::uint32_t hit_lanes = team.vote(counts);
        if (hit_lanes == 0) continue;
        const std::uint32_t peers = team.peers(item[g]), lower = part.before(peers);
        const int offset = counts ? batch.next[part.warp][item[g]] : 0;
        if (counts)
          list[hits + bits_in(part.before(hit_lanes))] =
              search_hit(position[g] - part.begin, item[g], offset + bits_in(lower)).bits;
        team.warp_barrier();
        if (counts && lower == 0)
          batch.next[part.warp][item[g]] = static_cast<std::uint16_t>(offset + bits_in(peers));
        team.warp_barrier();
        hits += bits_in(hit_lanes);
      }
    }
    return hits;
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
  KOKKOS_FORCEINLINE_FUNCTION void update_shares(const Team& team, searched_batch& batch,
                                                 const Kernel& team_kernel, int first, int size) const {
    for (int item = team.team_rank(); item < size; item += team.team_size()) {
      const int count = batch.count[item];
      if (count < team_share::fewest) continue;
      const auto* const order = batch.order() + batch.begin[item];
      int end = batch.before[item];
      while (end < count && order[end] < first + size) ++end;
      const team_share share(batch.rows[item], first + item, batch.begin[item], count, batch.before[item],
                             end, static_cast<int>(team_kernel.tiles.divisor()));
      if (share.tiles > 0) batch.shares[Kokkos::atomic_fetch_add(&batch.shares_of_team, 1)] = share;
      batch.rows[item] = -1;
    }
    team.team_barrier();
    const auto positions = static_cast<int>(items);
    update_by_team(team, batch.sums(positions), batch.sum_bytes(positions, bytes_of_tile), team_kernel,
                   batch.shares, batch.shares_of_team);
  }
};

}  // namespace ferry::kernels
