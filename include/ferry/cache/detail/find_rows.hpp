// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cached_addresser.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// How the location of a row is written down: as a row of a *virtual table*, which begins at the lower one of
/// host memory and device memory, or as one of packed_locations.
struct location_rule {
  std::int64_t cold_base;
  std::int64_t hot_base;
  std::int64_t slot_step;
  bool with_row;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t of(std::int64_t row, std::int64_t slot) const {
    return slot < 0 ? cold_base + row : hot_base + slot * slot_step + (with_row ? row : 0);
  }
};

/// Positions of a batch, of which about one in `every` is counted, a power of two. They are at irregular
/// distances: at regular ones an interleaved batch would have some of its columns counted alone.
template <class Source>
struct counted_positions {
  Source source;
  std::int64_t every;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row(std::int64_t i) const { return source.row(i, true); }
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t positions(std::int64_t) { return 1; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t uses(std::int64_t i) const {
    const auto mixed = static_cast<std::int64_t>(static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u >> 40);
    return (mixed & (every - 1)) == 0 ? every : 0;
  }
};

/// True if several items may have the same row.
template <class Source>
inline constexpr bool may_repeat_rows = false;
template <class Source>
inline constexpr bool may_repeat_rows<counted_positions<Source>> = true;

/// The segments of a plan: its rows with the number of positions of each.
struct counted_segments {
  static constexpr std::int64_t every = 1;

  const std::int64_t* unique_rows;
  const std::int64_t* segment_begin;
  const std::int64_t* unique_count;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row(std::int64_t i, bool = false) const {
    return i < *unique_count ? unique_rows[i] : -1;
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t positions(std::int64_t i) const {
    return segment_begin[i + 1] - segment_begin[i];
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t uses(std::int64_t i) const { return positions(i); }
};

/// Uses that a team has counted of rows, before it adds them to the counts: all teams of a batch use its most
/// popular row, and additions to one address take turns.
struct team_counts {
  static constexpr int bits = 10, entries = 1 << bits;
  static constexpr unsigned long long none = ~0ull;

  unsigned long long row[entries];
  std::uint32_t uses[entries];

  KOKKOS_FORCEINLINE_FUNCTION void clear(int entry) {
    row[entry] = none;
    uses[entry] = 0;
  }
  /// False if another row has the entry.
  KOKKOS_FORCEINLINE_FUNCTION bool add(std::int64_t number, std::int64_t more) {
    const auto key = static_cast<unsigned long long>(number);
    const auto entry = static_cast<int>(key * 0x9e3779b97f4a7c15u >> (64 - bits));
    const auto occupant = Kokkos::atomic_compare_exchange(&row[entry], none, key);
    if (occupant != none && occupant != key) return false;
    Kokkos::atomic_add(&uses[entry], static_cast<std::uint32_t>(more));
    return true;
  }
};

/// Looks every item's row up in the directory and writes its location, -1 if it has no row. Counts the uses
/// of rows, and hits and misses. A verb that writes marks the slots, and lists its misses if it is given
/// lists.
///
/// One thread takes a few items at equal distances, so neighbouring threads read neighbouring items, and the
/// loads of a thread's items overlap. Teams do the same, and count in shared memory first. The counters are
/// sums of integers: their values don't depend on the order of the threads.
template <class Source>
struct find_rows {
  static constexpr int items_per_thread = 4;
  static constexpr int team_size = 512;
  using shared_memory = team_counts;

  Source source;
  row_directory directory;
  location_rule rule;
  std::int64_t* locations;
  std::int64_t items;
  std::int64_t threads;
  std::uint32_t* counts;  ///< null: uses are not counted
  std::uint8_t* changed;  ///< null: slots do not become newer than host memory
  std::uint8_t* stale;    ///< null: the verb only reads
  std::uint64_t* tallies;
  missed_items missed;

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    look(thread, [this](std::int64_t row, std::int64_t uses) { count(counts + row, uses); });
  }

  /// For teams of team_size threads, and counts that are not null.
  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& counted = team.template shared<team_counts>();
    const int rank = team.team_rank();
    for (int e = rank; e < team_counts::entries; e += team_size) counted.clear(e);
    team.team_barrier();
    const std::int64_t thread = std::int64_t{team.league_rank()} * team_size + rank;
    if (thread < threads)
      look(thread, [&](std::int64_t row, std::int64_t uses) {
        if (!counted.add(row, uses)) count(counts + row, uses);
      });
    team.team_barrier();
    for (int e = rank; e < team_counts::entries; e += team_size)
      if (counted.uses[e] != 0) count(counts + counted.row[e], counted.uses[e]);
  }

 private:
  template <class Count>
  KOKKOS_FORCEINLINE_FUNCTION void look(std::int64_t thread, const Count& count_row) const {
    std::int64_t row[items_per_thread], slot[items_per_thread];
    for (int k = 0; k < items_per_thread; ++k) {
      const std::int64_t i = thread + k * threads;
      row[k] = i < items ? source.row(i) : -1;
    }
    for (int k = 0; k < items_per_thread; ++k) slot[k] = row[k] < 0 ? -1 : directory.find(row[k]);
    std::uint64_t hits = 0, misses = 0;
    for (int k = 0; k < items_per_thread; ++k) {
      const std::int64_t i = thread + k * threads;
      if (i >= items) break;
      if (row[k] < 0) {
        locations[i] = -1;
        continue;
      }
      locations[i] = rule.of(row[k], slot[k]);
      const auto positions = static_cast<std::uint64_t>(source.positions(i));
      (slot[k] >= 0 ? hits : misses) += positions;
      if (stale != nullptr) mark(i, slot[k]);
      if (counts == nullptr) continue;
      if (const std::int64_t uses = source.uses(i); uses != 0) count_row(row[k], uses);
    }
    std::uint64_t* counter = tallies + (thread & (detail::tally_room - 1));
    if (hits != 0) Kokkos::atomic_add(counter, hits);
    if (misses != 0) Kokkos::atomic_add(counter + detail::tally_room, misses);
  }

  KOKKOS_FORCEINLINE_FUNCTION void mark(std::int64_t item, std::int64_t slot) const {
    if (slot >= 0) {
      if (changed != nullptr) changed[slot] = detail::slot_dirty_again;
      return;
    }
    if (slot < -1) stale[loading(slot)] = 1;
    if (missed.items != nullptr) missed.add(item);
  }

  /// Stays at the largest number instead of passing it: if any addition has passed it, the last write is that
  /// number, in every order of the threads.
  KOKKOS_FORCEINLINE_FUNCTION static void count(std::uint32_t* counter, std::int64_t uses) {
    constexpr std::uint32_t largest = ~std::uint32_t{0}, most = largest / detail::row_cache::use;
    const std::uint32_t more =
        (uses < std::int64_t{most} ? static_cast<std::uint32_t>(uses) : most) * detail::row_cache::use;
    if (Kokkos::atomic_fetch_add(counter, more) > largest - more) Kokkos::atomic_store(counter, largest);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Batches of more positions have a sample of them counted. Smaller samples find too few of the rows that are
/// used rarely.
inline constexpr std::int64_t most_counted = std::int64_t{1} << 20;

/// One position in this many is counted.
inline std::int64_t counting_step(std::int64_t positions) {
  std::int64_t every = 1;
  while (positions / every > most_counted) every *= 2;
  return every;
}

/// The items of a source as find_rows counts them.
template <class Source>
auto counted(const Source& source, std::int64_t items) {
  if constexpr (std::is_same_v<Source, kernels::counted_segments>)
    return source;
  else if constexpr (std::is_same_v<Source, kernels::segment_heads>)
    return kernels::counted_segments{source.unique_rows, source.segment_begin, source.unique_count};
  else
    return kernels::counted_positions<Source>{source, counting_step(items)};
}

/// The look-up of the rows of a batch.
struct row_search {
  std::int64_t items;
  kernels::location_rule rule;
  bool writes;                     ///< the verb changes the rows
  kernels::missed_items missed{};  ///< lists of the rows that are not cached
  bool is_tallied = false;         ///< hits and misses were counted before
};

/// The locations of the items of a counted source, -1 for an item without a row. Begins a batch, that of
/// `plan` if there is one. Reports bad indices.
template <class Exec, class Source>
const std::int64_t* find_rows(launch_context<Exec>& call, row_cache& cache, const Source& source,
                              const row_search& search, const std::shared_ptr<plan_storage>& plan) {
  auto* locations = call.template scratch<std::int64_t>(search.items);
  const bool counts = begin_batch(call, cache, plan, search.writes);
  if (counts) cache.counted_every = source.every;
  const slot_book& book = cache.memory.book;
  const std::string& label = call.label("cached", "find");
  using kernel = kernels::find_rows<Source>;
  const std::int64_t threads = (search.items + kernel::items_per_thread - 1) / kernel::items_per_thread;
  const kernel find{source,
                    book.directory,
                    search.rule,
                    locations,
                    search.items,
                    threads,
                    counts ? cache.counts.data() : nullptr,
                    search.writes && !cache.writes_through ? book.changed : nullptr,
                    search.writes ? book.stale : nullptr,
                    search.is_tallied ? call.template scratch<std::uint64_t>(2 * tally_room) : book.tallies,
                    search.missed};
  if constexpr (!is_host_exec<Exec> && kernels::may_repeat_rows<Source>) {
    if (counts && search.items > kernel::team_size) {
      const tool_kernel reported(call.exec(), label);
      execution_backend<Exec>::launch_blocks(
          call.exec(), label, static_cast<int>((threads + kernel::team_size - 1) / kernel::team_size),
          kernel::team_size, find);
      return locations;
    }
  }
  launch(call.exec(), label, threads, find);
  return locations;
}

/// The rule of packed_locations.
inline kernels::location_rule packing_of(const row_cache& cache) {
  const std::int64_t slot = std::int64_t{1} << cache.row_bits();
  return {0, slot, slot, true};
}

/// The virtual table of a backing array: `table` with its data at the lower one of the two
/// memories. Its rows are the locations of `rule`.
template <class T, class Space>
array_ref<T, Space> virtual_table(const array_ref<T, Space>& table, const cached_array& cached,
                                  kernels::location_rule& rule) {
  array_ref<T, Space> view = table;
  rule = {};
  if (cached.stride == 0) return view;  // rows without bytes lie anywhere
  const std::uintptr_t base = std::min(cached.cold, cached.hot);
  const auto rows_from = [&](std::uintptr_t address) {
    return static_cast<std::int64_t>(address - base) / cached.stride;
  };
  rule = {rows_from(cached.cold), rows_from(cached.hot), 1, false};
  view.data = reinterpret_cast<T*>(base);
  // The locations reach into both memories, beyond the rows of the table.
  view.extents[0] = std::numeric_limits<std::int64_t>::max() / 2 / cached.stride;
  return view;
}

}  // namespace ferry::detail
