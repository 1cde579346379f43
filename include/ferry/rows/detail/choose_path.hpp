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
template <class Asked, verb What, class BatchSpace, path_kind... Without, class Exec, class T,
          class TableSpace, class Run>
ticket on_path(const Exec& exec, const array_ref<T, TableSpace>& table, std::int64_t n, bool planned,
               const Run& run) {
  if constexpr (!Asked::chosen_at_run_time) {
    return run(Asked{});
  } else {
    constexpr path_set all =
        candidate_paths<Exec, TableSpace, BatchSpace>(What).without(path_set{Without...});
    static_assert(all.contains(path_kind::direct) || all == path_set{path_kind::staged});
    if constexpr (all == path_set{path_kind::direct}) {
      return run(path::direct{});
    } else if constexpr (all == path_set{path_kind::staged}) {
      return run(path::staged{});
    } else {
      // What is captured into a graph runs without the host.
      const path_set here = execution_backend<Exec>::capturing(exec)
                                ? all.without(path_set{path_kind::staged, path_kind::cooperative})
                                : all;
      const path_kind best = choose_route(exec, facts_of<Exec, BatchSpace>(What, table, n, planned), here);
      if constexpr (all.contains(path_kind::ordered))
        if (best == path_kind::ordered) return run(path::ordered{});
      if constexpr (all.contains(path_kind::cooperative))
        if (best == path_kind::cooperative) return run(path::cooperative{});
      if constexpr (all.contains(path_kind::staged))
        if (best == path_kind::staged) return run(path::staged{});
      return run(path::direct{});
    }
  }
}

}  // namespace ferry::detail
