// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_bags.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/step.hpp>
#include <ferry/runtime/ticket.hpp>

#include <type_traits>

namespace ferry {

namespace detail {

/// `extra` is no_array, the weights of the positions, or the positions of the maxima. `weight_grads` is
/// no_array, or receives the gradients of the weights.
template <class... Policies, class Exec, class Rule, class Table, class State, class Indices, class Offsets,
          class Grads, class Extra, class WeightGrads>
ticket step_sharded_bags(const Exec& exec, const Rule& rule, Table& table, State& state,
                         const Indices& indices, const Offsets& offsets, const Grads& pooled_grads,
                         const Extra& extra, const WeightGrads& weight_grads) {
  using bag = bag_policies<Policies...>;
  using chosen = typename bag::chosen;
  require_sharded_bags<Exec, Table, Indices, Offsets, Grads, chosen, true>();
  static_assert(
      !chosen::template names<duplicates_category>,
      "ferry: step_bags adds the gradients of all positions of a row, as the backward pass of bags does, so it takes no duplicates policy.");
  const auto grads = read_only(make_ref(pooled_grads));
  using value = std::remove_const_t<typename decltype(grads)::value_type>;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  const auto& named = sharded_rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  auto note = note_of<chosen, typename bag::pooling, value, Rule, typename Extra::value_type,
                      typename WeightGrads::value_type>("step_bags", table);
  sharded_bag_step<bag, Exec, Rule, Table, State, std::remove_cvref_t<decltype(named)>,
                   std::remove_const_t<decltype(bags)>, std::remove_const_t<decltype(grads)>, Extra,
                   WeightGrads>
      verb(exec, rule, table, state, named, bags, grads, extra, weight_grads,
           add_plan(add_state(add_options(note, rule), state), indices));
  return verb.call.run(verb);
}

}  // namespace detail

/// The backward pass of gather_bags and one optimizer step on the rows that the bags of all ranks name, as if
/// their batches were one, by rank. Arguments, policies and bits are those of step_bags on an ordinary table;
/// indices may also be a sharded_plan, or a row_plan for tables of as many rows. Each owner reads the
/// gradient of a position's bag where it lies, or gets it once, however many of the bag's rows it has. Under
/// pooling::max a kernel first writes the share of each position, one row of gradients.
///
/// Collective, see sharded_table; a rank without bags passes empty arrays, of the same element types, and
/// counts the step. Blocks until all ranks have written. ticket::wait() throws out_of_range on all ranks
/// if one has a bad index or bad offsets, naming the rank, and invalid_argument on all under
/// nonfinite::reject; nothing is then written anywhere, and the step does not count. Throws invalid_argument
/// for shapes or options that do not fit, and peer_error if that happened to another rank.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Offsets, class Grads, class... Policies>
  requires(detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&,
                        sharded_table<T, Space, Spread>&, sharded_state<StateRule, StateType, StateSpace>&,
                        const Indices&, const Offsets&, const Grads&, Policies...> &&
           (!detail::AnArray<Policies> && ...))
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Offsets& offsets,
    const Grads& pooled_grads, Policies...) {
  detail::require_step_rule<Rule, StateRule>();
  return detail::step_sharded_bags<Policies...>(exec, rule, table, state, indices, offsets, pooled_grads,
                                                detail::no_array{}, detail::no_array{});
}

/// As above, with the weights of the positions, or under pooling::max the positions of the maxima, as
/// gather_bags wrote them.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Offsets, class Grads, class Extra, class... Policies>
  requires(detail::AnArray<Extra>&& detail::Fits<
               detail::step_bags_arguments, const Exec&, const Rule&, sharded_table<T, Space, Spread>&,
               sharded_state<StateRule, StateType, StateSpace>&, const Indices&, const Offsets&, const Grads&,
               const Extra&, Policies...> &&
           (!detail::AnArray<Policies> && ...))
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Offsets& offsets,
    const Grads& pooled_grads, const Extra& extra, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_step_extra<Exec, typename bag::pooling, Extra>();
  return detail::step_sharded_bags<Policies...>(exec, rule, table, state, indices, offsets, pooled_grads,
                                                detail::read_only(make_ref(extra)), detail::no_array{});
}

/// As above, with the weights of the positions of this rank's batch, and an array that receives their
/// gradients, also where the step is then refused for nonfinite gradients. Nothing is written to it if a rank
/// has a bad index or bad offsets.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Offsets, class Grads, class Weights, class WeightGrads,
          class... Policies>
  requires(detail::AnArray<Weights>&& detail::AnArray<WeightGrads>&& detail::Fits<
           detail::step_bags_arguments, const Exec&, const Rule&, sharded_table<T, Space, Spread>&,
           sharded_state<StateRule, StateType, StateSpace>&, const Indices&, const Offsets&, const Grads&,
           const Weights&, WeightGrads, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Offsets& offsets,
    const Grads& pooled_grads, const Weights& weights, WeightGrads&& weight_grads, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_step_extra<Exec, typename bag::pooling, Weights>();
  detail::require_weight_gradients<Exec, typename bag::pooling, WeightGrads>();
  return detail::step_sharded_bags<Policies...>(exec, rule, table, state, indices, offsets, pooled_grads,
                                                detail::read_only(make_ref(weights)), make_ref(weight_grads));
}

/// Refuses quantized rows. Does not compile.
template <class Exec, class Rule, class Q, class Space, class ScaleSpace, class Spread, class... Rest>
ticket step_bags(const Exec&, const Rule&, sharded_quantized_table<Q, Space, ScaleSpace, Spread>&,
                 const Rest&...) {
  static_assert(
      sizeof(Exec) == 0,
      "ferry: step_bags trains a sharded_table of numbers; a sharded_quantized_table is trained by step, with a gradient for each index.");
  return {};
}

}  // namespace ferry
