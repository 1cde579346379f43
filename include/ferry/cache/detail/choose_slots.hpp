// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/find_rows.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>

/// The kernel of cache::lru: which slots the rows of a batch get.
namespace ferry::kernels {

/// A host thread as a team.
struct lone_thread {
  [[nodiscard]] static int rank() { return 0; }
  [[nodiscard]] static int size() { return 1; }
  static void barrier() {}
  static std::int64_t sum_before(std::int64_t value, std::int64_t& total) {
    total = value;
    return 0;
  }
  [[nodiscard]] static std::int64_t broadcast(std::int64_t value) { return value; }
};

/// A block of a device as a team.
template <class Member>
struct block_of_threads {
  const Member& member;

  [[nodiscard]] KOKKOS_FUNCTION int rank() const { return member.team_rank(); }
  [[nodiscard]] KOKKOS_FUNCTION int size() const { return member.team_size(); }
  KOKKOS_FUNCTION void barrier() const { member.team_barrier(); }
  /// The sum of the values of lower ranks, and in `total` of all.
  KOKKOS_FUNCTION std::int64_t sum_before(std::int64_t value, std::int64_t& total) const {
    const std::int64_t before = member.team_scan(value);
    total = before + value;
    member.team_broadcast(total, member.team_size() - 1);
    return before;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t broadcast(std::int64_t value) const {
    member.team_broadcast(value, 0);
    return value;
  }
};

/// The neighbouring items of a thread.
struct item_run {
  std::int64_t begin, end;

  template <class Team>
  KOKKOS_FUNCTION static item_run of_thread(const Team& team, std::int64_t items) {
    const std::int64_t count = (items + team.size() - 1) / team.size(),
                       first = Kokkos::min(items, count * team.rank());
    return {first, Kokkos::min(items, first + count)};
  }
};

/// Positions of an item of a batch: of the segment of a plan several.
template <class Source>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t positions_of_item(const Source&, std::int64_t) {
  return 1;
}
KOKKOS_FORCEINLINE_FUNCTION std::int64_t positions_of_item(const counted_segments& segments,
                                                           std::int64_t item) {
  return segments.positions(item);
}

/// Looks up the slots of a batch's rows, and gives rows without one the slots of their group that were used
/// least recently. Slots that the batch uses keep their rows. Rows get slots in the order of their first
/// positions, and come into the order of use so: equal histories give equal slots.
///
/// One team for each group; each thread has a run of neighbouring positions, so that numbers of earlier
/// threads are one sum. Each hit marks its slot with the number of the batch and the position, each miss
/// claims its row in the directory; the lowest position stays. The team then counts, moves unused slots to
/// the front of the order of use, gives the first ones to the misses, and appends what was used. Positions of
/// a list of one dimension belong to the groups of their rows.
template <class Source, class Slot>
struct choose_slots {
  detail::slot_book book;
  detail::use_book uses;
  Source source;            ///< row(position, false): -1 for none, or the row
  Slot* slots;              ///< [positions of all lines]; null: only fetched
  std::int64_t positions;   ///< of a line
  std::int64_t table_rows;  ///< of all groups
  detail::fast_divisor group_rows;
  bool by_lines;  ///< each group has a line of its own
  bool spills;
  detail::report_writer report;

  static constexpr Slot no_row = -1, no_slot = -2;

  KOKKOS_FUNCTION void operator()(std::int64_t group) const { run(lone_thread{}, group); }
  template <class Member>
    requires(!std::convertible_to<Member, std::int64_t>)
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    run(block_of_threads<Member>{member}, member.league_rank());
  }

 private:
  static constexpr std::uint32_t highest_claim = loading_bit - 1;

  /// Entries of the directory and marks of slots are the largest for the lowest position.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t claim(std::int64_t position) {
    return loading_bit | (highest_claim - static_cast<std::uint32_t>(position));
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t mark(std::uint64_t batch, std::int64_t position) {
    return batch << 32 | (0xffffffffu - static_cast<std::uint32_t>(position));
  }

  enum class kind : unsigned char { own, none, bad, foreign };
  struct wanted {
    std::int64_t row;  ///< -1 unless it is one of the group's
    kind type;
  };
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t place(std::int64_t group, std::int64_t position) const {
    return by_lines ? group * positions + position : position;
  }
  KOKKOS_FORCEINLINE_FUNCTION wanted row_at(std::int64_t group, std::int64_t position) const {
    const std::int64_t row = source.row(place(group, position), false);
    if (row == no_row) return {-1, kind::none};
    if (row < 0 || row >= table_rows) return {-1, kind::bad};
    if (group_rows.quotient(row) != group) return {-1, by_lines ? kind::bad : kind::foreign};
    return {row, kind::own};
  }
  /// The entry of a row that the batch has claimed is that of its lowest position.
  KOKKOS_FORCEINLINE_FUNCTION bool claims(std::int64_t row, std::int64_t position) const {
    return row >= 0 && book.directory.slot_of[row] == claim(position);
  }
  KOKKOS_FORCEINLINE_FUNCTION bool is_first_use(std::int64_t row, std::int64_t position,
                                                std::uint64_t batch) const {
    if (row < 0) return false;
    const std::uint32_t entry = book.directory.slot_of[row];
    return row_directory::is_cached(entry) && uses.marks[entry - 1] == mark(batch, position);
  }

  template <class Team>
  KOKKOS_FUNCTION void run(const Team& team, std::int64_t group) const {
    const std::int64_t first_slot = group * uses.group_slots;
    const std::uint64_t batch = next_batch(team, group);
    const item_run turn = item_run::of_thread(team, positions);
    std::int64_t hits = 0, misses = 0, bad = 0;
    for (std::int64_t p = turn.begin; p < turn.end; ++p) {
      const wanted want = row_at(group, p);
      if (want.type == kind::bad) {
        ++bad;
        const std::int64_t position = place(group, p);
        if (by_lines || group == 0)
          report.out_of_range(position, static_cast<std::uint64_t>(source.row(position, false)));
      }
      if (want.row < 0) continue;
      if (const std::uint32_t entry = book.directory.slot_of[want.row]; row_directory::is_cached(entry)) {
        Kokkos::atomic_max(uses.marks + entry - 1, mark(batch, p));
        hits += positions_of_item(source, p);
      } else {
        Kokkos::atomic_max(book.directory.slot_of + want.row, claim(p));
        misses += positions_of_item(source, p);
      }
    }
    std::int64_t all_bad = 0;
    team.sum_before(bad, all_bad);
    team.barrier();
    // Both counts are below 2^31: one sum has new rows in its upper half, used slots in the lower one.
    std::int64_t counts = 0;
    for (std::int64_t p = turn.begin; p < turn.end; ++p) {
      const std::int64_t row = row_at(group, p).row;
      if (claims(row, p))
        counts += std::int64_t{1} << 32;
      else if (is_first_use(row, p, batch))
        ++counts;
    }
    std::int64_t all_counts = 0;
    const std::int64_t before = team.sum_before(counts, all_counts), new_rows = all_counts >> 32,
                       unused = uses.group_slots - (all_counts & 0xffffffff);
    const bool overflows = new_rows > unused && !spills, is_valid = all_bad == 0 && !overflows;
    if (all_bad == 0 && overflows && team.rank() == 0) report.overflow(group);
    const std::int64_t free_count = is_valid ? Kokkos::min(new_rows, unused) : 0;
    if (is_valid) take_unused(team, first_slot, batch, free_count);
    give_slots(team, group, batch, item_numbers{before >> 32, free_count});
    if (is_valid) {
      std::int64_t next = unused - free_count + (before & 0xffffffff) + Kokkos::min(before >> 32, free_count);
      for (std::int64_t p = turn.begin; p < turn.end; ++p) {
        const std::int64_t row = row_at(group, p).row;
        if (is_first_use(row, p, batch))
          uses.order[first_slot + next++] =
              static_cast<std::int32_t>(book.directory.slot_of[row] - 1 - first_slot);
      }
      const std::int64_t tally = (group * team.size() + team.rank()) % detail::tally_room;
      Kokkos::atomic_add(book.tallies + tally, static_cast<std::uint64_t>(hits));
      Kokkos::atomic_add(book.tallies + detail::tally_room + tally, static_cast<std::uint64_t>(misses));
    }
    if (slots != nullptr)
      for (std::int64_t p = turn.begin; p < turn.end; ++p) write_slot(group, p);
  }

  /// The number of the batch. Marks begin anew before numbers exceed 32 bits; the order of use stays.
  template <class Team>
  KOKKOS_FUNCTION std::uint64_t next_batch(const Team& team, std::int64_t group) const {
    std::uint64_t batch = uses.batches[group] + 1;
    team.barrier();
    if (batch >> 32 != 0) {
      for (std::int64_t i = team.rank(); i < uses.group_slots; i += team.size())
        uses.marks[group * uses.group_slots + i] = 0;
      batch = 1;
    }
    if (team.rank() == 0) uses.batches[group] = batch;
    team.barrier();
    return batch;
  }

  /// Moves the unused slots but the first `free_count` ones to the front of the order, and lists those. A
  /// tile is in registers before any of its slots moves, and none moves to a later tile.
  template <class Team>
  KOKKOS_FUNCTION void take_unused(const Team& team, std::int64_t first_slot, std::uint64_t batch,
                                   std::int64_t free_count) const {
    constexpr int at_once = 8;
    std::int32_t* const order = uses.order + first_slot;
    std::int32_t* const free_slots = uses.free_slots + first_slot;
    std::int64_t before = 0;
    for (std::int64_t tile = 0; tile < uses.group_slots; tile += std::int64_t{at_once} * team.size()) {
      const std::int64_t begin = tile + std::int64_t{at_once} * team.rank();
      std::int32_t slot[at_once];
      bool is_unused[at_once];
      for (int e = 0; e < at_once; ++e) slot[e] = begin + e < uses.group_slots ? order[begin + e] : -1;
      std::int64_t count = 0, tile_count = 0;
      for (int e = 0; e < at_once; ++e) {
        is_unused[e] = slot[e] >= 0 && uses.marks[first_slot + slot[e]] >> 32 != batch;
        count += is_unused[e] ? 1 : 0;
      }
      std::int64_t next = before + team.sum_before(count, tile_count);
      for (int e = 0; e < at_once; ++e)
        if (is_unused[e]) {
          (next < free_count ? free_slots[next] : order[next - free_count]) = slot[e];
          ++next;
        }
      before += tile_count;
    }
    team.barrier();
  }

  /// The new rows before those of a thread, and how many get a slot.
  struct item_numbers {
    std::int64_t before, with_slot;
  };
  /// Gives new rows free slots, and lists these for the kernel that moves rows. The others lose their claims.
  template <class Team>
  KOKKOS_FUNCTION void give_slots(const Team& team, std::int64_t group, std::uint64_t batch,
                                  item_numbers new_rows) const {
    const std::int64_t first_slot = group * uses.group_slots;
    std::int64_t list = 0;
    if (team.rank() == 0)
      list = static_cast<std::int64_t>(
          Kokkos::atomic_fetch_add(book.moving_count, static_cast<std::uint64_t>(new_rows.with_slot)));
    list = team.broadcast(list);
    team.barrier();
    std::int64_t number = new_rows.before;
    const item_run turn = item_run::of_thread(team, positions);
    for (std::int64_t p = turn.begin; p < turn.end; ++p) {
      const std::int64_t row = row_at(group, p).row;
      if (!claims(row, p)) continue;
      if (number >= new_rows.with_slot) {
        book.directory.erase(row);
        continue;
      }
      const std::int64_t slot = first_slot + uses.free_slots[first_slot + number];
      const std::int64_t old_row = book.current_rows[slot] - 1;
      if (old_row >= 0) book.directory.erase(old_row);
      book.moving[list + number] = slot << 1 | (book.changed[slot] != 0 ? 1 : 0);
      book.changed[slot] = 0;
      book.next_rows[slot] = old_row + 1;  // the row that leaves, up to the move
      book.current_rows[slot] = row + 1;
      book.directory.insert(row, slot);
      uses.marks[slot] = mark(batch, p);
      ++number;
    }
    team.barrier();
  }

  /// Writes a slot. Positions of a list of one dimension that have no row are those of the first team.
  KOKKOS_FUNCTION void write_slot(std::int64_t group, std::int64_t p) const {
    const wanted want = row_at(group, p);
    if (want.type == kind::own) {
      const std::uint32_t entry = book.directory.slot_of[want.row];
      slots[place(group, p)] = row_directory::is_cached(entry) ? static_cast<Slot>(entry - 1) : no_slot;
    } else if (want.type != kind::foreign && (by_lines || group == 0)) {
      slots[place(group, p)] = want.type == kind::none ? no_row : no_slot;
    }
  }
};

}  // namespace ferry::kernels
