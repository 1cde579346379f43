// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
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
  /// Of the kernel that changes rows: few threads of a device work on host memory, see plan_order. They have
  /// the first numbers, or the first teams.
  static constexpr std::int64_t threads_per_list = 128, threads = lists * threads_per_list, teams = 32;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t count(std::int64_t list) const { return counts[list * distance]; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t item(std::int64_t list, std::int64_t i) const {
    return items[list * room + i];
  }
};

struct clear_lists {
  std::uint32_t* counts;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { counts[i] = 0; }
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
         kernels::clear_lists{misses.counts});
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
    if constexpr (by_rows_of_teams<Functor>) {
      const auto& tuning = execution_backend<Exec>::tuning(exec);
      const std::int64_t at_once = tuning.flat_team_size / functor.lanes();
      const std::int64_t teams = std::min(tuning.most_flat_teams, (items + at_once - 1) / at_once);
      return teams_of<tuning_of<Exec>::flat_team_size>(exec, teams + kernels::missed_items::teams,
                                                       functor.lanes(), functor);
    } else {
      return iterations(exec, items * per_item + kernels::missed_items::threads, functor);
    }
  }
};

}  // namespace ferry::detail::schedule
