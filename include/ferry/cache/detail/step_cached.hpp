// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/update_cached.hpp>
#include <ferry/optim/detail/step_rows.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// One step on a cached table: as step_rows, on path::direct. State in host memory is cached with its rows;
/// counters of steps are not.
template <class Chosen, class Batch = rows_of_indices, class Exec, class Rule, class T, class Space,
          class State, class Named, class Value, class ValueSpace>
ticket step_cached(const Exec& exec, row_cache& cache, const Rule& optimizer,
                   const array_ref<T, Space>& table, State& state, const Named& named,
                   const array_ref<Value, ValueSpace>& grads) {
  using duplicates_policy = typename Chosen::template get<duplicates_category, duplicates::sum>;
  using count_policy = typename Chosen::template get<step_count_category, step_count::global>;
  using rounding_policy = typename Chosen::template get<rounding_category, rounding::nearest>;
  using nonfinite_policy = typename Chosen::template get<nonfinite_category, nonfinite::keep>;
  using state_space = typename State::memory_space;
  using job_type = update_job<T, Space, typename State::value_type, state_space, Rule, count_policy,
                              rounding_policy, nonfinite_policy>;
  require_any_order<Rule, T, duplicates_policy, count_policy, rounding_policy>();
  require_step_policies<Rule, typename job_type::template transforms_type<float>, T, count_policy,
                        rounding_policy>();
  static_assert(NumberElement<std::remove_const_t<Value>>, "ferry: step needs gradients that are numbers.");
  static_assert(
      may_dereference<Exec, state_space>() && transform_spaces<Rule>::template reached_by<Exec>,
      "ferry: a host execution space can't dereference state or factors in device_space; pass an instance of the device's execution space.");

  const auto& rule = optim::detail::transforms_of<Rule>::rule_in(optimizer);
  require_optimizer(Batch::verb, optimizer, table);
  require_options_in<typename job_type::template compute_type<Value>>(optimizer);
  job_type job{table, {}, {}, state.fields(), optimizer, state.clock()->steps + 1, state.clock()};
  job.for_each_transform_array([&](const auto& array) { require_foreign(Batch::verb, cache, array); });
  for (int f = 0; f < state.fields(); ++f) {
    job.state[static_cast<std::size_t>(f)] = state.field_ref(f);
    require_made_for(Batch::verb, job.state[static_cast<std::size_t>(f)], table, table.width());
  }
  for (int f = 0; f < State::row_fields; ++f) {
    job.row_state[static_cast<std::size_t>(f)] = state.row_field_ref(f);
    require_made_for(Batch::verb, job.row_state[static_cast<std::size_t>(f)], table, 1);
  }
  require_fields(Batch::verb, optim::detail::active_fields(rule), state, rule.name, table.label);
  const auto clock = state.clock();
  clock->require_policy(Batch::verb, count_policy::name, table.label);
  Batch::template require<Exec, Chosen>(table, named, grads);
  const bool first_to_count = count_policy::counts_rows && clock->row_policy.empty();
  tensor<std::uint32_t, state_space> counters;
  if constexpr (count_policy::counts_rows) {
    refuse_counting_capture(exec, Batch::verb);
    clock->require_countable(Batch::verb, count_policy::name, table.label);
    if (first_to_count) counters = optim::detail::row_counters(*clock, table, memory_home(exec));
    job.row_steps = make_ref(first_to_count ? counters : clock->row_steps);
    require_made_for(Batch::verb, job.row_steps, table, 1);
    if constexpr (count_policy::catches_up) clock->updates.make_room();
  }

  using clock_type = typename job_type::clock_type;
  rollback ends{clock, [](void* owner) { --static_cast<clock_type*>(owner)->steps; }, nullptr};
  if constexpr (nonfinite_policy::looks && !nonfinite_policy::reports)
    ends.skip = [](void* owner, bool counted) {
      auto& counts = *static_cast<clock_type*>(owner);
      if (counted) --counts.steps;
      ++counts.skipped;
    };
  ticket launched =
      update_cached<Chosen, duplicates_policy>(exec, Batch::verb, cache, job, named, grads, ends);
  // The state counts the step once it is enqueued; nothing throws after that.
  if (first_to_count) clock->count_rows(count_policy::name, std::move(counters));
  if constexpr (count_policy::catches_up)
    clock->updates.note(rule, job.step,
                        std::is_same_v<typename job_type::template compute_type<Value>, double>);
  ++clock->steps;
  return launched;
}

}  // namespace ferry::detail
