// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/catch_up.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/runtime/ticket.hpp>

namespace ferry {

/// catch_up for a cached table: all changes are written to host memory first, and the cached rows of table
/// and state are read again afterwards. Arguments, bits and errors are those of catch_up.
template <class Exec, class Rule, class Table, class Policy, class StateRule, class StateType,
          MemorySpace StateSpace, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule, cached_table<Table, Policy>& table,
    optim::state<StateRule, StateType, StateSpace>& state, Policies... policies) {
  return detail::run_on_table(exec, "catch_up", table.core(), true,
                              [&] { return catch_up(exec, rule, table.ref(), state, policies...); });
}

/// catch_up for cached optimizer records.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space, class Policy,
          class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule,
    cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>& table, Policies...) {
  return detail::run_on_table(exec, "catch_up", table.core(), true, [&] {
    auto state = table.record_state();
    return detail::catch_up_rows<detail::chosen_policies<Policies...>>(exec, rule, table.ref(), state);
  });
}

/// The gather of current rows under step_count::catch_up, from a cached table: all changes are written to
/// host memory first. Arguments, bits and errors are those of that gather.
template <class Exec, class Rule, class Table, class Policy, class StateRule, class StateType,
          MemorySpace StateSpace, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule, const cached_table<Table, Policy>& table,
    optim::state<StateRule, StateType, StateSpace>& state, const Indices& indices, Out&& out,
    Policies... policies) {
  return detail::run_on_table(exec, "gather", table.core(), false, [&] {
    detail::require_foreign("gather", table.core(), indices, out);
    return gather(exec, rule, table.ref(), state, indices, out, policies...);
  });
}

/// The gather of current rows from cached optimizer records.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space, class Policy,
          class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule,
    const cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>& table,
    const Indices& indices, Out&& out, Policies... policies) {
  return detail::run_on_table(exec, "gather", table.core(), false, [&] {
    detail::require_foreign("gather", table.core(), indices, out);
    auto state = table.record_state();
    return detail::gather_current_rows(exec, rule, table.ref(), state, indices, out, policies...);
  });
}

}  // namespace ferry
