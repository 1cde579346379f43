// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/global_transform.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/write_sharded.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/make_state.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/optim/step.hpp>

#include <string_view>
#include <tuple>
#include <type_traits>

namespace ferry {

namespace detail {

/// The policies of a step on a shard. Gradients have been scanned before.
template <class Chosen, class Duplicates>
using shard_step_policies = policies<shard_path_t<Chosen>, bounds::unchecked, shard_duplicates_t<Duplicates>,
                                     typename Chosen::template get<step_count_category, step_count::global>,
                                     typename Chosen::template get<rounding_category, rounding::nearest>>;

/// What the steps on the shards would refuse, so that no shard is written before.
template <class StepCount, class Compute, class Rule, class Table, class State>
void require_sharded_step(const char* verb, const collective& call, const Rule& optimizer, const Table& table,
                          const State& state) {
  const auto whole = whole_ref(table);
  const auto& rule = optim::detail::transforms_of<Rule>::rule_in(optimizer);
  require_optimizer(verb, optimizer, whole);
  require_options_in<Compute>(optimizer);
  state.require_made_for(verb, table);
  for (int r = call.first(); r < call.last(); ++r) {
    require_fields(verb, optim::detail::active_fields(rule), state.shard(r), rule.name, whole.label);
    state.shard(r).clock()->require_policy(verb, StepCount::name, whole.label);
    if constexpr (StepCount::counts_rows)
      state.shard(r).clock()->require_countable(verb, StepCount::name, whole.label);
  }
}

}  // namespace detail

/// One optimizer step on the rows that the batches of all ranks name, as if they were one batch, by rank.
/// Arguments and policies are those of step on an ordinary table; indices may also be a sharded_plan, or a
/// row_plan for tables of as many rows. One more policy: reduce::in_order (default), or reduce::by_rank,
/// another order of sums that sends fewer rows. Arrays of transforms have one number for each row of the
/// whole table, and the rule must be the same on all ranks.
///
/// Collective, see sharded_table; a rank without gradients passes empty arrays, of the same element type, and
/// counts the step. Blocks until all ranks have written. ticket::wait() throws out_of_range on all ranks
/// where one has a bad index, naming the rank, and invalid_argument on all under duplicates::reject and
/// nonfinite::reject; nothing is then written anywhere, and the step does not count. Throws invalid_argument
/// for shapes or options that do not fit, and peer_error where that happened to another rank.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Grads, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Grads& grads,
    Policies...) {
  using asked = detail::summing_policies<Policies...>;
  using chosen = typename asked::chosen;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_sharded_verb<Exec, sharded_table<T, Space, Spread>, Indices, Grads, chosen, true, true>();
  using duplicates_policy = typename asked::duplicates;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  const auto from = detail::read_only(make_ref(grads));
  using value = std::remove_const_t<typename decltype(from)::value_type>;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<chosen, typename asked::reduce, value, Rule>("step", table);
  detail::add_options(note, rule);
  detail::collective call(table.comm(), detail::add_plan(detail::add_state(note, state), indices));
  return call.guarded([&] {
    detail::require_sharded_batch<Exec, chosen>("step", call, table, named, from);
    detail::require_array_device("step", exec, from);
    using compute = detail::step_type<T, StateType, value>;
    detail::require_sharded_step<count_policy, compute>("step", call, rule, table, state);
    const auto on_shard = [&](int rank, const auto& rows, const auto& values) {
      auto& shard = table.shard(rank);
      auto& its_state = state.shard(rank);
      const auto there = detail::shard_instance(table.comm(), rank, exec);
      const auto its_rule =
          detail::rule_for_shard(rule, its_state.clock()->rows, static_cast<std::int64_t>(shard.rows()));
      using policies = detail::shard_step_policies<chosen, duplicates_policy>;
      if constexpr (detail::are_in_place<std::remove_cvref_t<decltype(values)>>)
        detail::step_rows<detail::chosen_policies<policies>, detail::values_of_ranks>(
            there, its_rule, detail::plain_rows(make_ref(shard)), its_state, rows, values.values)
            .join();
      else
        step(there, its_rule, shard, its_state, rows, values, policies{}).join();
    };
    const detail::verb_on_shards<detail::shard_path_t<chosen>, std::remove_const_t<decltype(on_shard)>> apply{
        on_shard};
    if constexpr (nonfinite_policy::looks) {
      const auto accept = [&](const detail::all_findings& found, ticket& refused) {
        if (found.nonfinite() == 0) return false;
        if constexpr (nonfinite_policy::reports)
          refused = detail::ticket_of_error(found.nonfinite_error(static_cast<std::int64_t>(table.width())));
        else
          for (int r = call.first(); r < call.last(); ++r) ++state.shard(r).clock()->skipped;
        return true;
      };
      return detail::write_by_routes<typename asked::reduce, duplicates_policy, bounds_policy>(
          call, "step", exec, table, named, from, detail::scan_values(exec, from), accept, apply);
    } else {
      return detail::write_by_routes<typename asked::reduce, duplicates_policy, bounds_policy>(
          call, "step", exec, table, named, from, {}, detail::any_values{}, apply);
    }
  });
}

}  // namespace ferry
