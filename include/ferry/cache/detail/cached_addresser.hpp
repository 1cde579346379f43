// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/rows/detail/addressed_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// Lists of the items whose rows are in host memory, in any order. Items come to the lists in groups of
/// neighbours, so that the lists have about equal lengths wherever these items are.
struct missed_items {
  static constexpr std::int64_t lists = 64, group = 32;

  std::int64_t* items = nullptr;  ///< [lists][room]; null: no lists
  std::uint32_t* counts = nullptr;
  std::int64_t room = 0;

  /// A counter per sector of the device's cache.
  static constexpr std::int64_t distance = 8;

  static std::int64_t room_for(std::int64_t items) {
    return (items + lists * group - 1) / (lists * group) * group;
  }
  KOKKOS_FORCEINLINE_FUNCTION void add(std::int64_t item) const {
    const std::int64_t list = item / group % lists;
    items[list * room + Kokkos::atomic_fetch_add(counts + list * distance, std::uint32_t{1})] = item;
  }
  /// Few threads of the kernel that changes rows work on host memory, see plan_order: those with the first
  /// numbers, or the first teams.
  static constexpr std::int64_t threads_per_list = 128, threads = lists * threads_per_list, teams = 32;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t count(std::int64_t list) const { return counts[list * distance]; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t item(std::int64_t list, std::int64_t i) const {
    return items[list * room + i];
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Empty lists for the misses among a number of items.
template <class Exec>
kernels::missed_items empty_lists(launch_context<Exec>& call, std::int64_t items) {
  using lists = kernels::missed_items;
  lists misses;
  misses.room = lists::room_for(items);
  misses.items = call.template scratch<std::int64_t>(lists::lists * misses.room);
  misses.counts = call.template scratch<std::uint32_t>(lists::lists * lists::distance);
  launch(call.exec(), call.label("cached", "clear"), lists::lists * lists::distance,
         kernels::clear_numbers<std::uint32_t>{misses.counts});
  return misses;
}

}  // namespace ferry::detail

namespace ferry::detail::schedule {

/// Hits by as many threads as there are, misses by few: a step on rows in host memory takes three times as
/// long with a full device, one on rows in device memory needs it. The kernel takes its misses from lists.
struct hits_and_misses {
  template <class Exec, class Functor>
  [[nodiscard]] auto kernel(const Exec& exec, std::int64_t items, std::int64_t per_item,
                            const Functor& functor) const {
    if constexpr (by_rows_of_teams<Functor, Exec>) {
      const auto& tuning = execution_backend<Exec>::tuning(exec);
      const std::int64_t at_once = tuning.flat_team_size / functor.lanes();
      const std::int64_t teams = std::min(tuning.most_flat_teams, (items + at_once - 1) / at_once);
      return teams_of<tuning_of<Exec>::flat_team_size>(exec, teams + kernels::missed_items::teams,
                                                       functor.lanes(), functor);
    } else if constexpr (requires { requires Functor::takes_teams; }) {
      return iterations(exec, items, functor);  // without lanes a thread has a row, wherever that lies
    } else {
      return iterations(exec, items * per_item + kernels::missed_items::threads, functor);
    }
  }
};

}  // namespace ferry::detail::schedule

/// The addresser of kernels that write to cached tables: a row lies in host memory or in a slot.
namespace ferry::kernels {

/// The location of a row.
struct row_location {
  std::int64_t row;
  std::int64_t slot;  ///< -1: in host memory
};

/// Locations in one number each: the row, with the slot + 1 in the bits above.
struct packed_locations {
  int row_bits;

  KOKKOS_FORCEINLINE_FUNCTION row_location unpack(std::int64_t packed) const {
    return {packed & ((std::int64_t{1} << row_bits) - 1), (packed >> row_bits) - 1};
  }
};

/// The locations of a batch's rows; -1 if an item has no row.
struct batch_locations : packed_locations {
  const std::int64_t* packed;

  KOKKOS_FORCEINLINE_FUNCTION row_location find(std::int64_t item) const {
    return packed[item] < 0 ? row_location{-1, -1} : unpack(packed[item]);
  }
};

/// From a row of an array in host memory to its slot, in bytes.
struct slot_shift {
  std::int64_t base = 0;    ///< from row 0 to slot 0
  std::int64_t stride = 0;  ///< 0 for an array that is not cached

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t bytes(const row_location& location) const {
    return base + (location.slot - location.row) * stride;
  }
};

/// Addresser of a job of at most `Arrays` arrays besides its table.
template <int Arrays>
struct cached_addresser {
  using lists_type = missed_items;
  static constexpr bool lists_far_items = true;

  batch_locations locations;
  slot_shift table;
  slot_shift arrays[Arrays];
  slot_shift counters;
  missed_items far_items;  ///< items whose rows are in host memory

  template <class Source>
  KOKKOS_FORCEINLINE_FUNCTION row_location find(const Source&, std::int64_t item) const {
    return locations.find(item);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool moves(const row_location& location) { return location.slot >= 0; }
  KOKKOS_FORCEINLINE_FUNCTION static bool is_far(const row_location& location) { return location.slot < 0; }

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t table_shift(const row_location& location) const {
    return table.bytes(location);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t array_shift(int number, const row_location& location) const {
    return arrays[number].bytes(location);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t counter_shift(const row_location& location) const {
    return counters.bytes(location);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The shift of an array; none for one that is not cached.
inline kernels::slot_shift shift_of(const row_cache& cache, const untyped_array& array) {
  const cached_array* const cached = cache.find(array);
  if (cached == nullptr) return {};
  return {static_cast<std::int64_t>(cached->hot) - static_cast<std::int64_t>(cached->cold), cached->stride};
}

template <class Job>
using cached_addresser_for = kernels::cached_addresser<Job::most_row_arrays>;

/// The addresser of a job on the locations of the batch's rows.
template <class Job>
cached_addresser_for<Job> address_slots(const row_cache& cache, const Job& job, const std::int64_t* packed,
                                        const kernels::missed_items& far_items) {
  cached_addresser_for<Job> rows{};
  rows.locations = {{cache.row_bits()}, packed};
  rows.far_items = far_items;
  rows.table = shift_of(cache, job.table);
  int number = 0;
  job.for_each_row_array([&](const auto& array) { rows.arrays[number++] = shift_of(cache, array); });
  if constexpr (Job::counts_rows) rows.counters = shift_of(cache, job.arrays.row_steps);
  return rows;
}

}  // namespace ferry::detail
