// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <type_traits>

namespace ferry::detail {

/// The checks common to verbs on cached tables, after those of the verb itself. Staged: whether host threads
/// may bring rows.
template <class Exec, class Chosen, bool Staged = false>
consteval void require_cached_verb() {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  require_cached_rows<Exec>();
  static_assert(
      path_policy::chosen_at_run_time ||
          (!splits_rows<path_policy> && (Staged || !by_host_alone<path_policy>)),
      "ferry: kernels move the rows of a cached_table: path::direct or path::ordered; gather also takes path::staged, by which host threads bring the rows that are not cached, unless these are quantized.");
}

/// The check of verbs that write to cached tables.
template <class Table>
consteval void require_writable() {
  static_assert(!std::is_const_v<typename backing_table<Table>::value_type>,
                "ferry: the backing table of this cached_table is read-only, so verbs can't write to it.");
}

/// Runs a verb on the table itself, with all changes written to it. The cached rows of a table that is not
/// const are read again afterwards. `operands`: see require_foreign. Returns the verb's result; later verbs
/// of any instance come after all of it.
template <class Exec, class Cached, class Run, class... Operands>
auto run_on_table(const Exec& exec, const char* verb, Cached& table, const Run& run,
                  const Operands&... operands) {
  require_cached_verb<Exec, chosen_policies<>>();
  row_cache& cache = table.core();
  const cache_use use(cache, verb);
  {
    launch_context<Exec> call(exec, verb);
    call.refuse_capture(
        "but this verb works on the backing table of a cached_table, whose cached rows a graph "
        "would not see; do it before the capture");
    flush_rows(call, cache);
    call.finish().drop();
  }
  const auto reload = [&] {
    if constexpr (std::is_const_v<Cached>) return;
    launch_context<Exec> call(exec, verb);
    reload_rows(call, cache);
    call.finish().drop();
  };
  try {
    require_foreign(verb, cache, operands...);
    if constexpr (std::is_void_v<decltype(run())>) {
      run();
      reload();
    } else {
      auto result = run();
      reload();
      return result;
    }
  } catch (...) {
    reload();  // a verb that a device error ended may have written
    throw;
  }
}

}  // namespace ferry::detail
