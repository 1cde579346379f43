// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/coded_shard.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_dense_step.hpp>
#include <ferry/distributed/sharded/detail/sharded_write.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/make_state.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/step.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

template <class Choice, class Exec, class Rule, class Table, class State, class Named, class Values>
struct sharded_step : sharded_write<sharded_step<Choice, Exec, Rule, Table, State, Named, Values>, Choice,
                                    Exec, Table, Named, Values> {
  using base = typename sharded_step::sharded_write;
  using chosen = typename Choice::chosen;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  using compute = step_type<typename Table::value_type, typename State::value_type, typename base::value>;
  using policies_of_shard = chosen_policies<shard_step_policies<chosen, typename Choice::duplicates>>;

  const Rule& rule;
  State& state;

  sharded_step(const Exec& instance, const Rule& optimizer, Table& rows, State& moments, const Named& indices,
               const Values& grads, const call_note& note)
      : base("step", instance, rows, indices, grads, note), rule(optimizer), state(moments) {}

  void check() {
    base::check();
    require_sharded_step<count_policy, compute>("step", this->call, rule, this->table, state);
  }
  void route() {
    if constexpr (nonfinite_policy::looks) this->scanned = scan_values(this->exec, this->values);
    base::route();
  }
  [[nodiscard]] bool refuse() {
    return this->refuse_batches() || this->template refuse_gradients<nonfinite_policy>(state);
  }
  template <class Rows, class Grads>
  void update(int rank, const Rows& rows, const Grads& grads) {
    step_rows<policies_of_shard>(this->instance(rank), rule_of_shard(rule, this->table, state, rank),
                                 step_access_of_shard(this->table, rank), state.shard(rank),
                                 rows_named_by(rows), read_only(make_ref(grads)))
        .join();
  }
  template <class Grads>
  void update_in_place(int rank, const values_in_place<Grads>& grads) {
    step_rows<policies_of_shard, values_of_ranks>(
        this->instance(rank), rule_of_shard(rule, this->table, state, rank),
        step_access_of_shard(this->table, rank), state.shard(rank), grads.plan, grads.values)
        .join();
  }
};

}  // namespace detail

/// One optimizer step on the rows that the batches of all ranks name, as if they were one batch, by rank.
/// Arguments and policies are those of step on an ordinary table; indices may also be a sharded_plan, or a
/// row_plan for tables of as many rows. One more policy: reduce::in_order (default), or reduce::by_rank,
/// another order of sums that sends fewer rows. Arrays of transforms have one number for each row of the
/// whole table, and the rule must be the same on all ranks.
///
/// Rows of a sharded_quantized_table are decoded, updated and encoded as step does with a quantized_tensor,
/// and all ranks have set the same factor.
///
/// Collective, see sharded_table; a rank without gradients passes empty arrays, of the same element type, and
/// counts the step. Blocks until all ranks have written. ticket::wait() throws out_of_range on all ranks
/// if one has a bad index, naming the rank, and invalid_argument on all under duplicates::reject and
/// nonfinite::reject; nothing is then written anywhere, and the step does not count. Throws invalid_argument
/// for shapes or options that do not fit, and peer_error if that happened to another rank.
template <class Exec, class Rule, detail::ShardedRows Table, class StateRule, class StateType,
          class StateSpace, class Indices, class Grads, class... Policies>
  requires(detail::Fits<detail::indexed_step_arguments, const Exec&, const Rule&, Table&,
                        sharded_state<StateRule, StateType, StateSpace>&, const Indices&, const Grads&,
                        Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule, Table& table, sharded_state<StateRule, StateType, StateSpace>& state,
    const Indices& indices, const Grads& grads, Policies...) {
  using asked = detail::summing_policies<Policies...>;
  using chosen = typename asked::chosen;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_sharded_verb<Exec, Table, Indices, Grads, chosen, true, true>();
  detail::require_scales_of_shards<Exec, Table>();
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  const auto sources = detail::read_only(make_ref(grads));
  using value = std::remove_const_t<typename decltype(sources)::value_type>;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  constexpr bool reads_in_place = detail::reads_where_they_are<chosen>;
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<chosen, typename asked::reduce, value, Rule>("step", table);
  detail::add_factor(detail::add_options(note, rule), table);
  detail::sharded_step<detail::write_choice<asked, reads_in_place, nonfinite_policy::looks>, Exec, Rule,
                       Table, sharded_state<StateRule, StateType, StateSpace>,
                       std::remove_cvref_t<decltype(named)>, std::remove_const_t<decltype(sources)>>
      verb(exec, rule, table, state, named, sources,
           detail::add_plan(detail::add_state(note, state), indices));
  return verb.call.run(verb);
}

/// One optimizer step on all rows of a sharded table. Each rank passes the gradients of the rows that it
/// owns, in the order of its shard: what a reduce-scatter of a model's gradients leaves there. Of a
/// replicated table all ranks own all rows, and pass equal gradients. A thread that acts for the group as a
/// whole passes those of the whole table, in its order. Policies are those of a step of all rows of an
/// ordinary table.
///
/// Collective, see sharded_table. Blocks until all ranks have written. No gradient travels between ranks.
/// Bits and errors are those of the step with indices that names each row once.
template <class Exec, class Rule, detail::ShardedRows Table, class StateRule, class StateType,
          class StateSpace, class Grads, class... Policies>
  requires(detail::Fits<detail::dense_step_arguments, const Exec&, const Rule&, Table&,
                        sharded_state<StateRule, StateType, StateSpace>&, const Grads&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule, Table& table, sharded_state<StateRule, StateType, StateSpace>& state,
    const Grads& grads, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_dense_step<Exec, tensor<typename Table::value_type, typename Table::memory_space>, Grads,
                             Policies...>();
  detail::require_scales_of_shards<Exec, Table>();
  const auto sources = detail::read_only(make_ref(grads));
  using value = std::remove_const_t<typename decltype(sources)::value_type>;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  auto note = detail::note_of<chosen, value, Rule>("step of all rows", table);
  detail::add_factor(detail::add_options(note, rule), table);
  using shard_policies =
      detail::chosen_policies<detail::shard_step_policies<chosen, duplicates::assume_unique>>;
  const detail::every_row rows_of_table{static_cast<std::int64_t>(table.rows())};
  detail::sharded_dense_step<chosen, shard_policies, Exec, Rule, Table,
                             sharded_state<StateRule, StateType, StateSpace>,
                             std::remove_const_t<decltype(sources)>>
      verb(exec, rule, table, state, rows_of_table, sources, detail::add_state(note, state));
  return verb.call.run(verb);
}

/// Refuses the state of an ordinary table for a sharded one, and the other way round. Does not compile.
/// @{
template <class Exec, class Rule, detail::ShardedRows Table, class StateRule, class StateType,
          class StateSpace, class... Rest>
ticket step(const Exec&, const Rule&, Table&, optim::state<StateRule, StateType, StateSpace>&,
            const Rest&...) {
  static_assert(sizeof(Exec) == 0,
                "ferry: a sharded table is stepped with the state that optim::make_state made for it.");
  return {};
}
template <class Exec, class Rule, class T, class Space, class Extents, class StateRule, class StateType,
          class StateSpace, class... Rest>
ticket step(const Exec&, const Rule&, tensor<T, Space, Extents>&,
            sharded_state<StateRule, StateType, StateSpace>&, const Rest&...) {
  static_assert(sizeof(Exec) == 0,
                "ferry: an ordinary table is stepped with the state that optim::make_state made for it.");
  return {};
}
/// @}

}  // namespace ferry
