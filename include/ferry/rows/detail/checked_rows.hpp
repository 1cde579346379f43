// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

/// Small batches of checked indices without a plan: one launch looks for bad indices and writes the rows.
namespace ferry::kernels {

/// True if a thread of a team sees a bad index in its part of a batch, which has a position at least. The
/// first team records bad ones.
template <class Team, class Named>
KOKKOS_FORCEINLINE_FUNCTION bool sees_bad(const Team& team, const Named& named, std::int64_t positions) {
  constexpr int at_once = 8;  // indices of a thread under way
  const auto last = static_cast<int>(positions - 1);
  bool any = false;
  FERRY_LOOP_OF_DEVICE
  for (int first = team.team_rank(); first <= last; first += at_once * team.team_size()) {
    // Nothing is decided or recorded here, or loads would wait for one another. Beyond the last position that
    // one is looked at once more.
    typename Named::index_type index[at_once];
    for (int k = 0; k < at_once; ++k) {
      const int position = first + k * team.team_size();
      index[k] = named.indices[position < last ? position : last];
    }
    bool bad = false;
    for (int k = 0; k < at_once; ++k) bad |= named.is_bad(index[k]);
    any |= bad;
    if (!bad || team.league_rank() != 0) continue;
    FERRY_LOOP_OF_DEVICE
    for (int k = 0; k < at_once; ++k)
      if (const int position = first + k * team.team_size(); position <= last) named.row(position, true);
  }
  return any;
}

/// Runs `kernel` for each work item, unless a row of the batch is bad. All teams look at all indices, so each
/// knows before it writes; the first one reports.
///
/// Device mapping: the threads of all teams stride over the work items. Teams are few, because each reads the
/// whole batch.
template <class Kernel, class Named>
struct checked_rows {
  static constexpr int team_size = 512;

  Kernel kernel;
  Named named;  ///< an index_rows
  std::int64_t positions;
  std::int64_t count;  ///< of work items
  int teams;

  struct verdict {
    int bad;
  };

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& batch = team.template shared<verdict>();
    if (team.team_rank() == 0) batch.bad = 0;
    team.team_barrier();
    if (sees_bad(team, named, positions)) batch.bad = 1;
    team.team_barrier();
    if (batch.bad != 0) return;
    const std::int64_t step = std::int64_t{teams} * team_size;
    for (std::int64_t i = std::int64_t{team.league_rank()} * team_size + team.team_rank(); i < count;
         i += step)
      kernel(i);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail::schedule {

/// One thread per work item, of few teams that check the `positions` indices first.
template <class Named>
struct checked {
  static constexpr bool covers_items = true;

  Named named;
  std::int64_t positions;

  template <class Exec, class Functor>
  void enqueue(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
               const Functor& functor) const {
    using kernel = kernels::checked_rows<Functor, Named>;
    const std::int64_t count = items * per_item;
    const std::int64_t blocks = (count + kernel::team_size - 1) / kernel::team_size;
    const auto teams = static_cast<int>(
        std::min<std::int64_t>(blocks, execution_backend<Exec>::tuning(exec).teams_that_check));
    const tool_kernel reported(exec, label);
    execution_backend<Exec>::launch_blocks(exec, label, teams, kernel::team_size,
                                           kernel{functor, named, positions, count, teams});
  }
};

}  // namespace ferry::detail::schedule
