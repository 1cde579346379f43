// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/optim/step.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/tensor/tensor.hpp>

#include <type_traits>

namespace ferry {

/// step on a cached table: see the step on any table. Weights and state of cached rows change in device
/// memory alone; state in host memory is cached from the first step on, and belongs to the cache as the table
/// does. So are counters of rows (step_count::per_row, catch_up). Bits and errors are those without a cache.

/// One optimizer step on cached optimizer records: weights and state of a cached row lie together in device
/// memory. Otherwise as step on a cached table. Arguments, bits and errors are those of step on records.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space, class Policy,
          class Indices, class Grads, class... Policies>
  requires(detail::Fits<detail::indexed_step_arguments, const Exec&, const Rule&,
                        cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>&,
                        const Indices&, const Grads&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule,
    cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>& table, const Indices& indices,
    const Grads& grads, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_step_rule<Rule, RecordRule>();
  detail::require_row_verb<Exec, tensor<T, Space>, Indices, Grads, chosen, true, true>();
  using table_type = std::remove_reference_t<decltype(table)>;
  detail::table_access<table_type>::template require<Exec, chosen>();
  const detail::table_access<table_type> access(table, "step");
  auto state = table.record_state();
  return detail::step_rows<chosen>(exec, rule, access, state, detail::rows_named_by(indices),
                                   detail::read_only(make_ref(grads)));
}

/// As above, a step of all rows.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space, class Policy,
          class Grads, class... Policies>
  requires(detail::Fits<detail::dense_step_arguments, const Exec&, const Rule&,
                        cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>&, const Grads&,
                        Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule,
    cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>& table, const Grads& grads,
    Policies...) {
  using chosen = detail::dense_step_policies<Policies...>;
  detail::require_step_rule<Rule, RecordRule>();
  detail::require_dense_step<Exec, tensor<T, Space>, Grads, Policies...>();
  using table_type = std::remove_reference_t<decltype(table)>;
  detail::table_access<table_type>::template require<Exec, chosen>();
  const detail::table_access<table_type> access(table, "step");
  auto state = table.record_state();
  return detail::step_rows<chosen>(exec, rule, access, state, detail::every_row{access.table().rows()},
                                   detail::read_only(make_ref(grads)));
}

namespace optim {

/// make_state for the backing table of a cache.
/// @{
template <MemorySpace Space, class StateType, class Rule, class Table, class Policy,
          class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const cached_table<Table, Policy>& table,
                              StepCount policy = {}) {
  return make_state<Space, StateType>(rule, table.ref(), policy);
}
template <MemorySpace Space, class Rule, class Table, class Policy, class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const cached_table<Table, Policy>& table,
                              StepCount policy = {}) {
  return make_state<Space, typename detail::default_state<Table>::type>(rule, table, policy);
}
template <class Rule, class Table, class Policy, class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const cached_table<Table, Policy>& table,
                              StepCount policy = {}) {
  return make_state<typename detail::default_state<Table>::space>(rule, table, policy);
}
/// @}

}  // namespace optim

}  // namespace ferry
