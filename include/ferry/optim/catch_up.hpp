// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/caught_up.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

template <class Chosen, class Exec, class Rule, class T, class Space, class State>
ticket catch_up_rows(const Exec& exec, const Rule& optimizer, const array_ref<T, Space>& table,
                     State& state) {
  using state_space = typename State::memory_space;
  using rounding_policy = typename Chosen::template get<rounding_category, rounding::nearest>;
  require_catch_up<Exec, Rule, T, Space, State>();
  require_policies<Chosen, false, false, true>();
  static_assert(!(Chosen::template names<path_category> || Chosen::template names<step_count_category> ||
                  Chosen::template names<nonfinite_category>),
                "ferry: catch_up takes no policy but rounding::nearest or rounding::stochastic.");
  static_assert(
      !rounding_policy::is_random || !std::is_floating_point_v<T>,
      "ferry: rounding::stochastic is for tables of half_t or bhalf_t; weights of float and double are not rounded to a narrower format.");
  require_dense_rows("catch_up", table);
  require_optimizer("catch_up", optimizer, table);
  launch_context<Exec> call(exec, "catch_up");
  if (!may_be_behind("catch_up", state, table)) return call.finish();
  call.refuse_capture("but catching up ends a history on the host; do it before the capture");
  auto& clock = *state.clock();
  const auto arrays = arrays_for_catch_up("catch_up", state, table);
  const catch_up_job<Rule, T, Space, State> job{table,     arrays,          state.fields(),
                                                optimizer, clock.steps + 1, state.clock()};
  const std::string label = "ferry::catch_up";
  const auto catch_up_on = [&](const auto& kernel_exec) {
    if (table.width() != 0)
      launch_caught_up<rounding_policy>(call, kernel_exec, label, job, kernels::identity{}, table.rows(),
                                        table, true);
    launch_fill(kernel_exec, call.label("count"),
                fill_target<std::uint32_t>{clock.row_steps.data(), table.rows(), 1, 1},
                kernels::constant_value<std::uint32_t>{static_cast<std::uint32_t>(clock.steps)});
  };
  bool on_exec = true;
  if constexpr (!is_host_exec<Exec> &&
                (is_any_of<pageable_space, Space, state_space> || transform_spaces<Rule>::any_pageable))
    on_exec = execution_backend<Exec>::reaches_pageable(exec);
  if (table.rows() == 0) {
    // A shard without rows ends its history as the others do.
  } else if (on_exec) {
    job.for_each_array([&](const auto& array) { call.touches(array); });
    catch_up_on(exec);
  } else if constexpr (Space::is_host_accessible && state_space::is_host_accessible &&
                       transform_spaces<Rule>::on_host) {
    wait_for_host_access(call, label, table);
    job.for_each_array([&](const auto& array) { call.wait_for_host_access(array); });
    const auto host = host_side(exec);
    catch_up_on(host);
    host.fence(label);
  } else {
    throw invalid_argument(
        joined("ferry::catch_up: neither device nor host reach both ", table.describe(), " and its state"));
  }
  if constexpr (is_host_exec<Exec>) execution_backend<Exec>::fence(exec, label);
  clock.updates.begin_at(clock.steps + 1);
  return call.finish();
}

template <class Exec, class Rule, class Table, class State, class Indices, class Out, class... Policies>
ticket gather_current_rows(const Exec& exec, const Rule& optimizer, const Table& table, State& state,
                           const Indices& indices, Out&& output, Policies... policies) {
  using chosen = chosen_policies<Policies...>;
  require_row_verb<Exec, Table, Indices, Out, chosen, false>();
  require_output<Out>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  static_assert(
      path_policy::chosen_at_run_time || in_batch_order<path_policy>,
      "ferry: a gather that catches up computes the rows where the kernels run: path::direct alone.");
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto rows = make_ref(table);
  const auto out = make_ref(output);
  using value = typename decltype(rows)::value_type;
  using space = typename decltype(rows)::memory_space;
  require_catch_up<Exec, Rule, value, space, State>();
  static_assert(NumberElement<typename decltype(out)::value_type>,
                "ferry: a gather that catches up gives numbers.");
  require_optimizer("gather", optimizer, rows);
  if (!may_be_behind("gather", state, rows)) return gather(exec, table, indices, output, policies...);
  const auto& named = rows_named_by(indices);
  require_batch<Exec, chosen>("gather", rows, named, out);

  launch_context<Exec> call(exec, "gather");
  call.refuse_capture(counts_each_step);
  const auto arrays = arrays_for_catch_up("gather", state, rows);
  const catch_up_job<Rule, value, space, State> job{
      rows, arrays, state.fields(), optimizer, state.clock()->steps + 1, state.clock()};
  require_direct_reach("gather", exec, out);
  call.writes_to(out);
  job.for_each_array([&](const auto& array) {
    require_direct_reach("gather", exec, array);
    call.reads_from(array);
  });
  if constexpr (is_plan<Indices>) call.use(named.storage());
  if (out.size() != 0)
    launch_caught_up<rounding::nearest>(call, exec, "ferry::gather::caught_up", job,
                                        rows_for_kernels<bounds_policy>(call, named, rows.rows()), out.rows(),
                                        out, false);
  else if constexpr (!is_plan<Indices>)
    look_at_bounds<bounds_policy>(call, named, rows.rows());
  return call.finish(rows, positions_of(named), has_signed_indices(named));
}

}  // namespace detail

/// Under step_count::catch_up: applies to every row of the table the steps that it missed. Table and state
/// are then the result of dense training.
///
///   exec      the execution space instance that the work is enqueued on
///   rule      the rule of the steps, with its transforms
///   table     the table of the steps; any memory space
///   state     the state of the steps
///   policies  rounding  as in step; default nearest
///
/// Call it before saving table and state, and before code other than the gather below reads them. It drops
/// the coefficient history of the steps so far and frees its memory. If it is called often, rounding::nearest
/// loses changes below half a unit in the last place of half_t and bhalf_t. The work is enqueued on `exec`;
/// if `exec` can't reach the memory, the host does it before the call returns. Throws invalid_argument for
/// arguments that do not fit.
template <class Exec, class Rule, class Table, class StateRule, class StateType, MemorySpace StateSpace,
          class... Policies>
  requires(!detail::is_table_object<std::remove_cvref_t<Table>> &&
           detail::Fits<detail::catch_up_arguments, const Exec&, const Rule&, Table,
                        optim::state<StateRule, StateType, StateSpace>&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule, Table&& table, optim::state<StateRule, StateType, StateSpace>& state,
    Policies...) {
  detail::require_execution_space<Exec>();
  detail::require_rows<Table>();
  detail::require_output<Table>();
  detail::require_reach<Exec, Table>();
  return detail::catch_up_rows<detail::chosen_policies<Policies...>>(exec, rule, make_ref(table), state);
}
/// catch_up for records, which hold weights and state of a row in one record.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space,
          class... Policies>
  requires(detail::Fits<detail::catch_up_arguments, const Exec&, const Rule&,
                        optim::records<RecordRule, T, StateType, Space>&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule, optim::records<RecordRule, T, StateType, Space>& records,
    Policies...) {
  detail::require_execution_space<Exec>();
  return detail::catch_up_rows<detail::chosen_policies<Policies...>>(exec, rule, records.table(), records);
}

/// Under step_count::catch_up: out[p] = row indices[p] of the table with all missed steps applied. A model
/// must compute with these rows.
///
///   exec      the execution space instance that the work is enqueued on
///   rule      the rule of the steps, with its transforms
///   table     the table of the steps; any memory space that `exec` reaches
///   state     the state of the steps
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   out       one row per index; must not overlap the table
///   policies  path    path::direct, also by default
///             bounds  default bounds::check; a plan has its own
///
/// Table and state stay unchanged: a row's next step applies the missed steps for good. Ordering, lifetimes
/// and errors are those of gather for any table.
template <class Exec, class Rule, class Table, class StateRule, class StateType, MemorySpace StateSpace,
          class Indices, class Out, class... Policies>
  requires(!detail::is_table_object<std::remove_cvref_t<Table>> &&
           detail::Fits<detail::gather_arguments, const Exec&, const Rule&, const Table&,
                        optim::state<StateRule, StateType, StateSpace>&, const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule, const Table& table,
    optim::state<StateRule, StateType, StateSpace>& state, const Indices& indices, Out&& out,
    Policies... policies) {
  return detail::gather_current_rows(exec, rule, table, state, indices, out, policies...);
}
/// gather for records, which hold weights and state of a row in one record.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space,
          class Indices, class Out, class... Policies>
  requires(detail::Fits<detail::gather_arguments, const Exec&, const Rule&,
                        optim::records<RecordRule, T, StateType, Space>&, const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule, optim::records<RecordRule, T, StateType, Space>& records,
    const Indices& indices, Out&& out, Policies... policies) {
  return detail::gather_current_rows(exec, rule, records.table(), records, indices, out, policies...);
}

}  // namespace ferry
