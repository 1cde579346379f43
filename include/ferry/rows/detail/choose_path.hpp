// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/policy/path.hpp>
#include <ferry/profile/current_profile.hpp>
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>

namespace ferry::detail {

template <class Path>
inline constexpr path_kind kind_of = path_kind::direct;
template <>
inline constexpr path_kind kind_of<path::ordered> = path_kind::ordered;
template <>
inline constexpr path_kind kind_of<path::staged> = path_kind::staged;
template <>
inline constexpr path_kind kind_of<path::cooperative> = path_kind::cooperative;

/// The paths compiled for a call: the requested one, or for path::automatic the candidates for these spaces
/// except `Without`, which the operands rule out. Rows that are not strided have no machine profile, so
/// path::automatic is path::direct.
template <class Access, class Path, verb What, class Exec, class BatchSpace, path_kind... Without>
consteval path_set paths_to() {
  if constexpr (Access::is_strided && Path::chosen_at_run_time) {
    constexpr path_set barred{Without...};
    constexpr path_set allowed =
        candidate_paths<Exec, typename Access::memory_space, BatchSpace>(What).without(barred);
    if constexpr (allowed.empty())  // never none: direct says what it can't reach
      return {barred.contains(path_kind::staged) ? path_kind::direct : path_kind::staged};
    else
      return allowed;
  } else {
    return {kind_of<Path>};
  }
}

/// The one of `Paths` that the call takes, by the rule of path_rule.hpp.
///
///   What       the verb
///   table, n   the table and the number of positions
///   planned    whether the indices are sorted already
template <path_set Paths, verb What, class BatchSpace, class Exec, class T, class TableSpace>
path_kind choose_path([[maybe_unused]] const Exec& exec,
                      [[maybe_unused]] const array_ref<T, TableSpace>& table, [[maybe_unused]] std::int64_t n,
                      [[maybe_unused]] bool planned) {
  if constexpr (Paths.size() == 1) {
    return Paths.first();
  } else {
    // Work captured into a graph runs without the host, which takes part in the plan of a verb that writes.
    const path_set barred = planned || What == verb::gather
                                ? path_set{path_kind::staged, path_kind::cooperative}
                                : path_set{path_kind::ordered, path_kind::staged, path_kind::cooperative};
    const path_set allowed = execution_backend<Exec>::capturing(exec) ? Paths.without(barred) : Paths;
    return choose_route(exec, facts_of<Exec, BatchSpace>(What, table, n, planned), allowed);
  }
}

/// act(path) for the path of `Paths` that a call takes. Always inlined: a backtrace has one call less.
template <path_set Paths, class Act>
[[gnu::always_inline]] inline ticket on_path(path_kind best, const Act& act) {
  if constexpr (Paths.contains(path_kind::ordered))
    if (best == path_kind::ordered) return act(path::ordered{});
  if constexpr (Paths.contains(path_kind::staged))
    if (best == path_kind::staged) return act(path::staged{});
  if constexpr (Paths.contains(path_kind::cooperative))
    if (best == path_kind::cooperative) return act(path::cooperative{});
  if constexpr (Paths.contains(path_kind::direct))
    if (best == path_kind::direct) return act(path::direct{});
  return {};  // not reached: the path is one of these
}

}  // namespace ferry::detail
