// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_bags.hpp>
#include <ferry/distributed/sharded/detail/values_of_batch.hpp>
#include <ferry/distributed/sharded/gather_bags.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/step.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <cstdint>
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
  using pooling = typename bag::pooling;
  require_sharded_bags<Exec, Table, Indices, Offsets, Grads, chosen, true>();
  static_assert(
      !chosen::template names<duplicates_category>,
      "ferry: step_bags adds the gradients of all positions of a row, as the backward pass of bags does, so it takes no duplicates policy.");
  const auto grads = read_only(make_ref(pooled_grads));
  using grads_type = std::remove_const_t<decltype(grads)>;
  using value = std::remove_const_t<typename grads_type::value_type>;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  const auto& named = sharded_rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  using compute = step_type<typename Table::value_type, typename State::value_type, value>;
  using bags_type = std::remove_const_t<decltype(bags)>;
  using items_type = bag_batch<bag, Exec, Table, bags_type, grads_type, Extra, compute>;
  using home = typename items_type::home;
  using sum = std::conditional_t<items_type::weighs, weighted_sum, duplicates::sum>;
  using policies_of_shard = chosen_policies<shard_step_policies<chosen, sum>>;
  constexpr bool finds_weight_grads = !std::is_same_v<WeightGrads, no_array>;
  constexpr bool reads = reads_in_place<chosen, Exec, Table, typename items_type::sent, home>;
  auto note =
      note_of<chosen, pooling, value, Rule, typename Extra::value_type, typename WeightGrads::value_type>(
          "step_bags", table);
  collective call(table.comm(), add_plan(add_state(add_options(note, rule), state), indices));
  try {
    ticket refused;
    const std::int64_t positions = routed_positions(named);
    require_sharded_bag_batch<chosen, Exec>("step_bags", call, table, named, bags, grads);
    require_a_bag("step_bags", positions, grads);
    require_extra<pooling>("step_bags", extra, positions, grads);
    if constexpr (finds_weight_grads) {
      require_weights("step_bags", weight_grads, positions, gradients_of_weights);
      require_apart("step_bags", call, table, weight_grads);
      require_direct_reach("step_bags", exec, weight_grads);
    }
    require_sharded_step<count_policy, compute>("step_bags", call, rule, table, state);
    sharded_batch<Exec, Table> batch(call, "step_bags", exec, table);
    items_type items(call, exec, table, bags, grads, extra);
    items.bucket(batch, named);
    if constexpr (items_type::finds_maxima) {
      items.make_shares(batch.items());
      const bool is_good = !items.has_bad_bags() && !has_bad_indices(call, batch.items(), named);
      use_rows_of_batch<chosen, bounds_policy, home>(
          call, "step_bags", exec, table, batch, named, is_good,
          [&]<class Bounds>(const auto& rows, const auto& list, Bounds) {
            const auto maxima = positions_of_maxima<typename Table::value_type, pooling, Bounds>(
                exec, rows, list, bags, grads);
            items.share(batch.items(), read_only(make_ref(maxima)));
          });
    } else if constexpr (pooling::selects) {
      items.make_shares(batch.items());
      if (!items.has_bad_bags()) items.share(batch.items(), extra);
    }
    const auto owned = items.values();
    batch.meet(items.template scan<nonfinite_policy>(), batch.template offer<reads>(owned));
    if (batch.refuses(refused)) return refused;
    if constexpr (finds_weight_grads) {
      use_rows_of_batch<chosen, bounds_policy, home>(
          call, "step_bags", exec, table, batch, named, true,
          [&]<class Bounds>(const auto& rows, const auto& list, Bounds) {
            write_weight_gradients<Bounds>(exec, rows, list, bags, items.gradients(), weight_grads);
          });
      call.end_reads();  // before any row is stepped, also over the weights
    }
    if (batch.template refuses_gradients<nonfinite_policy>(refused, state)) return refused;
    const auto received = batch.template receive<home>(owned, static_cast<std::int64_t>(table.width()));
    const auto write = [&](int r) {
      const auto& rows = received[static_cast<std::size_t>(r - call.first())];
      const Exec shard_exec = batch.instance(r);
      const fence_on_exception<Exec> reading(shard_exec);  // memory of other ranks
      step_rows<policies_of_shard, values_of_ranks>(shard_exec, rule_of_shard(rule, table, state, r),
                                                    step_access_of_shard(table, r), state.shard(r), rows.plan,
                                                    rows.values)
          .join();
    };
    call.is_whole() ? write_jointly(call.first(), call.last(), write) : write(call.rank());
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  } catch (...) {
    call.report_failure();
    throw;
  }
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
