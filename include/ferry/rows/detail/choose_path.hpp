#pragma once

#include <ferry/policy/path.hpp>
#include <ferry/profile/current_profile.hpp>
#include <ferry/profile/detail/candidate_paths.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::detail {

/// Calls run(path) with the path that was asked for, or, under path::automatic, with the one that the machine's
/// profile predicts to be the fastest for this call. Only the candidates for these spaces are compiled.
///
///   What       the verb
///   Without    candidates that the operands rule out
///   table, n   the table and the number of positions
///   planned    the indices are sorted already
template <class Asked, verb What, class BatchSpace, route... Without, class Exec, class T, class TableSpace,
          class Run>
ticket on_path(const Exec& exec, const array_ref<T, TableSpace>& table, std::int64_t n, bool planned,
               const Run& run) {
  if constexpr (!Asked::chosen_at_run_time) {
    return run(Asked{});
  } else {
    constexpr route_set all =
        candidate_routes<Exec, TableSpace, BatchSpace>(What).without(route_set{Without...});
    static_assert(all.contains(route::direct) || all == route_set{route::staged});
    if constexpr (all == route_set{route::direct}) {
      return run(path::direct{});
    } else if constexpr (all == route_set{route::staged}) {
      return run(path::staged{});
    } else {
      // What is captured into a graph runs without the host.
      const route_set here = execution_backend<Exec>::capturing(exec)
                                 ? all.without(route_set{route::staged, route::cooperative})
                                 : all;
      const route best = choose_route(exec, facts_of<Exec, BatchSpace>(What, table, n, planned), here);
      if constexpr (all.contains(route::ordered))
        if (best == route::ordered) return run(path::ordered{});
      if constexpr (all.contains(route::cooperative))
        if (best == route::cooperative) return run(path::cooperative{});
      if constexpr (all.contains(route::staged))
        if (best == route::staged) return run(path::staged{});
      return run(path::direct{});
    }
  }
}

}  // namespace ferry::detail
