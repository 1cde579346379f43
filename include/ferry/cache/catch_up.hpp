// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/catch_up.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/runtime/ticket.hpp>

namespace ferry {

/// catch_up for a cached table: all changes are written to host memory first, and the cached rows of table
/// and state are read again afterwards. Arguments, bits and errors are those of catch_up.
template <class Exec, class Rule, class Table, class Policy, class Directory, class StateRule,
          class StateType, MemorySpace StateSpace, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule, cached_table<Table, Policy, Directory>& table,
    optim::state<StateRule, StateType, StateSpace>& state, Policies... policies) {
  return detail::run_on_table(exec, "catch_up", table.core(), true,
                              [&] { return catch_up(exec, rule, table.ref(), state, policies...); });
}

/// The gather of current rows under step_count::catch_up, from a cached table: all changes are written to
/// host memory first. Arguments, bits and errors are those of that gather.
template <class Exec, class Rule, class Table, class Policy, class Directory, class StateRule,
          class StateType, MemorySpace StateSpace, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule, const cached_table<Table, Policy, Directory>& table,
    optim::state<StateRule, StateType, StateSpace>& state, const Indices& indices, Out&& out,
    Policies... policies) {
  return detail::run_on_table(exec, "gather", table.core(), false, [&] {
    return gather(exec, rule, table.ref(), state, indices, out, policies...);
  });
}

}  // namespace ferry
