// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/step_bags.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/cache/detail/step_bags_cached.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/runtime/ticket.hpp>

namespace ferry {

/// step_bags on a cached table. Arguments, bits and errors are those of step_bags; on path::direct only. If
/// the verb reads the table before the step, for the maxima of pooling::max, all changes are written to host
/// memory first and the cached rows are read again afterwards.
template <class Exec, class Rule, class Table, class Policy, class Directory, class StateRule,
          class StateType, MemorySpace StateSpace, class Indices, class Offsets, class Grads,
          class... Policies>
  requires(!detail::AnArray<Policies> && ...)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, cached_table<Table, Policy, Directory>& table,
    optim::state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Offsets& offsets,
    const Grads& pooled_grads, Policies...) {
  detail::require_writable<Table>();
  using bag = detail::bag_policies<Policies...>;
  using checked = typename detail::backing_table<Table>::checked;
  detail::require_bag_step<Exec, Rule, checked, StateRule, Indices, Offsets, Grads, bag>();
  detail::require_cached_verb<Exec, typename bag::chosen>();
  return detail::step_bags_cached<bag>(exec, rule, table, state, indices, offsets, make_ref(pooled_grads),
                                       detail::no_array{}, detail::no_array{});
}

/// As above, with the weights of the positions, or under pooling::max the positions of the maxima.
template <class Exec, class Rule, class Table, class Policy, class Directory, class StateRule,
          class StateType, MemorySpace StateSpace, class Indices, class Offsets, class Grads, class Extra,
          class... Policies>
  requires(detail::AnArray<Extra> && (!detail::AnArray<Policies> && ...))
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, cached_table<Table, Policy, Directory>& table,
    optim::state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Offsets& offsets,
    const Grads& pooled_grads, const Extra& extra, Policies...) {
  detail::require_writable<Table>();
  using bag = detail::bag_policies<Policies...>;
  using checked = typename detail::backing_table<Table>::checked;
  detail::require_bag_step<Exec, Rule, checked, StateRule, Indices, Offsets, Grads, bag>();
  detail::require_step_extra<Exec, typename bag::pooling, Extra>();
  detail::require_cached_verb<Exec, typename bag::chosen>();
  return detail::step_bags_cached<bag>(exec, rule, table, state, indices, offsets, make_ref(pooled_grads),
                                       make_ref(extra), detail::no_array{});
}

}  // namespace ferry
