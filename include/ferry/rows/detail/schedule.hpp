// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/policy/occupancy.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::kernels {

/// The words of a split cursor that a kernel sees, in page-locked memory. The kernel walks a list from the
/// front, and the host from the back. Both may take an item near the split, and both write the same result.
struct split_state {
  volatile std::int64_t* progress = nullptr;     ///< [teams] end of the chunk that a team works on
  const volatile std::int64_t* limit = nullptr;  ///< items from here on are the host's; null: no host part
};

/// A kernel of items x per_item work items, run in the order of the items by a small number of teams.
///
/// Device mapping: a team takes a chunk of neighbouring items, and its threads stride over the chunk's work
/// items. Without a chunk size each team has one chunk. Each team reads few pages at a time, so all teams
/// together stay within the device's TLB reach.
template <class Flat>
struct team_chunked {
  Flat flat;
  std::int64_t items;         ///< upper bound
  const std::int64_t* count;  ///< the number of items, if only the device knows it
  std::int64_t per_item;
  std::int64_t chunk;  ///< items; 0: all items, divided evenly among the teams
  split_state split;
  int teams;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t total = count == nullptr || items < *count ? items : *count;
    const std::int64_t size = chunk > 0 ? chunk : (total + teams - 1) / teams;
    const bool shared = split.limit != nullptr;
    std::int64_t limit = total;
    for (std::int64_t begin = team.league_rank() * size; begin < limit; begin += teams * size) {
      const std::int64_t end = begin + size < total ? begin + size : total;
      std::int64_t latest = limit;
      // Read early and used after the chunk: the value takes microseconds over the link.
      if (shared && team.team_rank() == 0) {
        split.progress[team.league_rank()] = end;
        latest = *split.limit;
      }
      for (std::int64_t i = begin * per_item + team.team_rank(); i < end * per_item; i += team.team_size())
        flat(i);
      if (shared) {
        team.team_broadcast(latest, 0);  // all threads of a team must decide alike
        if (latest < limit) limit = latest;
      }
    }
  }
};

}  // namespace ferry::kernels

/// Schedules: the order in which a device walks over a kernel of items x per_item work items. On a host each
/// thread walks over neighbouring items, whatever the schedule.
namespace ferry::detail::schedule {

/// True if the vector lanes of a thread of a team can share a row.
template <class Exec>
inline constexpr bool has_lanes = !is_host_exec<Exec> && execution_backend<Exec>::lane_group::most_lanes > 1;

/// Kernels that assign rows to the threads of a team, with `lanes()` vector lanes per row. A device without
/// lanes runs them as hosts do, a thread for each row.
template <class Functor, class Exec>
inline constexpr bool by_rows_of_teams = requires {
  requires Functor::takes_teams && has_lanes<Exec>;
};

/// Flat teams per multiprocessor that the registers of such a kernel must allow: those that wait for memory
/// state it.
template <class Functor>
consteval int flat_teams_at_once() {
  if constexpr (requires { Functor::flat_teams; })
    return Functor::flat_teams;
  else
    return 1;
}

/// The type of the numbers that a backend is tuned by.
template <class Exec>
using tuning_of = std::remove_cvref_t<decltype(execution_backend<Exec>::tuning(std::declval<const Exec&>()))>;

/// The most flat teams of such a kernel: those that fit at once, if teams stay for several rows.
template <class Functor, class Tuning>
std::int64_t most_teams([[maybe_unused]] const Tuning& tuning) {
  if constexpr (requires { requires Functor::teams_stay; })
    return std::int64_t{tuning.multiprocessors} * flat_teams_at_once<Functor>();
  else
    return tuning.most_flat_teams;
}

/// One thread per work item, all at once.
struct flat {
  static constexpr bool covers_items = true;

  template <class Exec, class Functor>
  [[nodiscard]] auto kernel(const Exec& exec, std::int64_t items, std::int64_t per_item,
                            const Functor& functor) const {
    if constexpr (by_rows_of_teams<Functor, Exec>) {
      const auto& tuning = execution_backend<Exec>::tuning(exec);
      const std::int64_t at_once = tuning.flat_team_size / functor.lanes();
      const std::int64_t most = most_teams<Functor>(tuning);
      return teams_of<tuning_of<Exec>::flat_team_size, flat_teams_at_once<Functor>()>(
          exec, std::min(most, (items + at_once - 1) / at_once), functor.lanes(), functor);
    } else {
      return iterations(exec, items * per_item, functor);
    }
  }
};

/// True if the work items of an order may hold several rows each.
template <class Order>
inline constexpr bool covers_items = requires {
  requires Order::covers_items;
};

/// One thread per work item, in a kernel that leaves them all registers, see launch_each.
struct each {
  template <class Exec, class Functor>
  void enqueue(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
               const Functor& functor) const {
    execution_backend<Exec>::launch_each(exec, label, items * per_item, functor);
  }
};

/// Chunk by chunk, by a small number of teams. Kokkos launches those of kernels by rows alone: it allocates
/// for teams, which verbs on path::direct must not do.
struct team_chunks {
  const std::int64_t* count = nullptr;  ///< the number of items, if only the device knows it
  std::int64_t chunk = 0;
  kernels::split_state split{};
  bool is_reported = true;  ///< false for kernels of several host threads, which tools need not expect
  int teams = 0;            ///< 0: as many as the backend is tuned for

  template <class Exec>
  [[nodiscard]] int teams_on(const Exec& exec) const {
    return teams > 0 ? teams : execution_backend<Exec>::tuning(exec).ordered_teams;
  }
  template <class Exec, class Functor>
  [[nodiscard]] auto kernel(const Exec& exec, std::int64_t, std::int64_t, const Functor& functor) const {
    return teams_of<tuning_of<Exec>::ordered_team_size>(exec, teams_on(exec), functor.lanes(), functor);
  }
  template <class Exec, class Functor>
    requires(!by_rows_of_teams<Functor, Exec>)
  void enqueue(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
               const Functor& functor) const {
    const int blocks = teams_on(exec);
    std::optional<tool_kernel> report;
    if (is_reported) report.emplace(exec, label);
    execution_backend<Exec>::launch_blocks(
        exec, label, blocks, tuning_of<Exec>::ordered_team_size,
        kernels::team_chunked<Functor>{functor, items, count, per_item, chunk, split, blocks});
  }
};

/// An order on no more blocks than an occupancy allows: chunk by chunk, unless it allows all.
template <class Occupancy, class Exec, class Order>
[[nodiscard]] auto limited([[maybe_unused]] const Exec& exec, const Order& order) {
  if constexpr (std::is_same_v<Occupancy, occupancy::full> || is_host_exec<Exec>) {
    return order;
  } else {
    static_assert(std::is_same_v<Order, flat> || std::is_same_v<Order, team_chunks>,
                  "ferry: occupancy::* limits kernels that walk over the rows of a batch.");
    team_chunks chunks;
    int most = static_cast<int>(most_blocks<Occupancy>(exec));
    if constexpr (std::is_same_v<Order, team_chunks>) {
      chunks = order;
      most = std::min(most, order.teams_on(exec));
    }
    chunks.teams = most;
    return chunks;
  }
}

}  // namespace ferry::detail::schedule

namespace ferry::detail {

/// Enqueues functor(i) for each of items x per_item work items on `exec`, in the order of the schedule.
/// Always inlined: on a host it only forwards.
template <class Exec, class Order, class Functor>
[[gnu::always_inline]] inline void launch(const Exec& exec, const std::string& label,
                                          [[maybe_unused]] const Order& order, std::int64_t items,
                                          std::int64_t per_item, const Functor& functor) {
  if (items <= 0 || per_item <= 0) return;
  if constexpr (is_host_exec<Exec>) {
    launch(exec, label, items * per_item, functor);
  } else if constexpr (requires { order.enqueue(exec, label, items, per_item, functor); }) {
    order.enqueue(exec, label, items, per_item, functor);
  } else {
    const auto kernel = order.kernel(exec, items, per_item, functor);
    [[maybe_unused]] const auto launching = execution_backend<Exec>::template lock_launch<decltype(kernel)>();
    Kokkos::parallel_for(label, kernel.policy, kernel.functor);
  }
}

}  // namespace ferry::detail
