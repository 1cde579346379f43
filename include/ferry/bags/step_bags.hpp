// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <type_traits>

/// The path of step_bags from its arguments to step_rows.
namespace ferry::detail {

/// The gradients are rows of bags, and the plan says which row is whose.
struct rows_of_bags {
  static constexpr const char* verb = "step_bags";
  template <class Exec, class Chosen, class Batch>
  static void require(const auto& table, const Batch& batch, const auto&) {
    require_plan<Exec, Chosen>(verb, batch, table);
  }
};

/// The sum over the positions of a row.
template <class Pooling, class Extra>
using sum_of_positions =
    std::conditional_t<Pooling::selects, chosen_sum,
                       std::conditional_t<std::is_same_v<Extra, no_array>, duplicates::sum, weighted_sum>>;

/// True if step_bags trains a kind of table: of quantized rows those in records.
template <class Table>
inline constexpr bool has_trained_bags = !is_coded_weights<typename step_table<step_access<Table>>::type>;

/// Checks the shapes, makes the plan and steps on the rows of the table.
template <class Bag, class Exec, class Rule, class Table, class State, class Indices, class Offsets,
          class Value, class ValueSpace, class Extra, class WeightGrads>
ticket step_bags_of(const Exec& exec, const Rule& rule, Table& table, State& state, const Indices& indices,
                    const Offsets& offsets, const array_ref<Value, ValueSpace>& grads, const Extra& extra,
                    const WeightGrads& weight_grads) {
  if constexpr (!has_trained_bags<Table&>) {
    return {};  // require_bag_step refuses it
  } else {
    const char* verb = rows_of_bags::verb;
    const step_access<Table&> access(table, verb);
    using pooling = typename Bag::pooling;
    using chosen = typename Bag::chosen;
    using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
    using sum = sum_of_positions<pooling, Extra>;
    using with_sum = chosen_policies<typename chosen::list, sum>;
    using compute = step_type<typename step_access<Table&>::value_type, typename State::value_type, Value>;
    const auto& batch = rows_named_by(indices);
    access.require_foreign(verb, batch, offsets, grads, extra, weight_grads);
    const auto bags = bags_named_by(offsets);
    const std::int64_t positions = positions_of(batch);
    require_bags(verb, bags, positions, grads);
    require_a_bag(verb, positions, grads);
    require_shapes(verb, access.table(), grads.rows(), grads);
    require_extra<pooling>(verb, extra, positions, grads);
    if constexpr (!std::is_same_v<WeightGrads, no_array>)
      require_weights(verb, weight_grads, positions, gradients_of_weights);
    const auto step_by = [&](const row_plan& plan) {
      const auto shares =
          plan_bags<pooling, bounds_policy, compute>(exec, access, plan, bags, extra, weight_grads, grads);
      return step_rows<with_sum, rows_of_bags>(exec, rule, access, state, rows_named_by(shares.plan),
                                               shares.gradients);
    };
    require_bag_indices<Exec, chosen>(verb, batch, access.table());
    if constexpr (is_plan<std::remove_cvref_t<decltype(batch)>>)
      return step_by(batch);
    else
      return step_by(plan_rows_of<bounds_policy>(exec, batch, access.table().rows()));
  }
}

/// Checks the types of step_bags.
template <class Exec, class Rule, class Table, class State, class Indices, class Offsets, class Grads,
          class Bag>
consteval void require_bag_step() {
  using chosen = typename Bag::chosen;
  using access = step_access<std::remove_reference_t<Table>&>;
  static_assert(
      has_trained_bags<std::remove_reference_t<Table>&>,
      "ferry: of quantized tables step_bags trains a rowwise_int8_tensor; for another one gather the gradient of its bag for each position, and call step.");
  if constexpr (has_trained_bags<std::remove_reference_t<Table>&>) {
    require_step_rule<Rule, typename State::rule_type>();
    require_row_verb<Exec, typename access::checked, Indices, Grads, chosen, true, true>();
    require_offsets<Exec, Offsets>();
    static_assert(
        !chosen::template names<duplicates_category>,
        "ferry: step_bags adds the gradients of all positions of a row, as the backward pass of bags does, so it takes no duplicates policy.");
    access::require_writable();
    access::template require<Exec, chosen>();
  }
}

/// Checks the types of the weights of positions or the positions of maxima.
template <class Exec, class Pooling, class Extra>
consteval void require_step_extra() {
  require_weight_type<Exec, Extra>();
  using element = std::remove_const_t<typename traits_of<Extra>::value_type>;
  static_assert(
      !Pooling::selects || std::is_same_v<element, std::int32_t> || std::is_same_v<element, std::int64_t>,
      "ferry: pooling::max takes no weights; the further array has the positions of the maxima from gather_bags, so its elements must be int32 or int64.");
}

/// Checks the type of the array that receives the gradients of the weights.
template <class Exec, class Pooling, class WeightGrads>
consteval void require_weight_gradients() {
  require_rows<WeightGrads>();
  require_reach<Exec, WeightGrads>();
  require_output<WeightGrads>();
  static_assert(!Pooling::selects,
                "ferry: pooling::max takes no weights, so there are no gradients of weights.");
  static_assert(FloatingElement<typename traits_of<WeightGrads>::value_type>,
                "ferry: the gradients of the weights must be floating-point numbers.");
}

}  // namespace ferry::detail

namespace ferry {

/// The backward pass of gather_bags and an optimizer step on the rows, in one: each position of bag b hands
/// its share of pooled_grads[b] to its row, and the sum of a row's shares is its gradient. The shares are
/// never in memory.
///
///   exec, rule, table, state    as in step
///   indices, offsets            as in gather_bags; here every position must belong to a bag
///   pooled_grads                one row of numbers per bag
///   policies  pooling  default pooling::mean; that of the forward pass
///             path, bounds, step_count, rounding, nonfinite: as in step
///
/// The share of a position is the bag's gradient under pooling::sum. Under pooling::mean it is divided by the
/// number of rows of the bag. Under pooling::max the position of a column's maximum gets its gradient, and
/// the others get 0; the maxima are found in the table as it is now, before the step. The bits are those of
/// step on a gradient for every position, with duplicates::sum. Rows of positions that get only zeros are
/// stepped as well. Positions that bounds::skip leaves out get nothing and do not count.
///
/// Ordering, lifetimes, counting of steps and errors are those of step. ticket::wait() throws out_of_range
/// for bad offsets too, unless bounds are unchecked; table and state are then unchanged. The indices are
/// sorted; to use a row_plan saves that. A graph can't capture this verb. The call uses scratch memory: 16
/// bytes per position, 8 more with weights, and one row per bag for pooling::mean and pooling::max.
template <class Exec, class Rule, class Table, detail::StateOfTable State, class Indices, class Offsets,
          class Grads, class... Policies>
  requires(detail::takes_bags<Table>&&
               detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&, Table, State&,
                            const Indices&, const Offsets&, const Grads&, Policies...>)
[[nodiscard]] ticket step_bags(const Exec& exec, const Rule& rule, Table&& table, State& state,
                               const Indices& indices, const Offsets& offsets, const Grads& pooled_grads,
                               Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_step<Exec, Rule, Table, State, Indices, Offsets, Grads, bag>();
  return detail::step_bags_of<bag>(exec, rule, table, state, indices, offsets, make_ref(pooled_grads),
                                   detail::no_array{}, detail::no_array{});
}

/// As above, with one more array:
///
///   extra     under pooling::sum and pooling::mean the weights of the positions, by which the shares are
///             multiplied. Under pooling::max the positions of the maxima, as gather_bags wrote them.
template <class Exec, class Rule, class Table, detail::StateOfTable State, class Indices, class Offsets,
          class Grads, class Extra, class... Policies>
  requires(detail::takes_bags<Table>&& detail::AnArray<Extra>&&
               detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&, Table, State&,
                            const Indices&, const Offsets&, const Grads&, const Extra&, Policies...>)
[[nodiscard]] ticket step_bags(const Exec& exec, const Rule& rule, Table&& table, State& state,
                               const Indices& indices, const Offsets& offsets, const Grads& pooled_grads,
                               const Extra& extra, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_step<Exec, Rule, Table, State, Indices, Offsets, Grads, bag>();
  detail::require_step_extra<Exec, typename bag::pooling, Extra>();
  return detail::step_bags_of<bag>(exec, rule, table, state, indices, offsets, make_ref(pooled_grads),
                                   make_ref(extra), detail::no_array{});
}

/// As above, and writes the gradients of the weights:
///
///   weights       rank-1 array of numbers, one per position
///   weight_grads  rank-1 array of floating-point numbers: element p becomes the sum over the columns of the
///                 bag's gradient times the row of position p before the step, divided by the number of rows
///                 under pooling::mean; 0 for positions without a row. Written also if the step then
///                 throws for its state or its options
///
/// The sums have the order of additions that ferry::step uses for sums over a row. Table and weight_grads
/// must be in memory that kernels of `exec` reach.
template <class Exec, class Rule, class Table, detail::StateOfTable State, class Indices, class Offsets,
          class Grads, class Weights, class WeightGrads, class... Policies>
  requires(detail::takes_bags<Table>&& detail::AnArray<Weights>&& detail::AnArray<WeightGrads>&& detail::Fits<
           detail::step_bags_arguments, const Exec&, const Rule&, Table, State&, const Indices&,
           const Offsets&, const Grads&, const Weights&, WeightGrads, Policies...>)
[[nodiscard]] ticket step_bags(const Exec& exec, const Rule& rule, Table&& table, State& state,
                               const Indices& indices, const Offsets& offsets, const Grads& pooled_grads,
                               const Weights& weights, WeightGrads&& weight_grads, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_step<Exec, Rule, Table, State, Indices, Offsets, Grads, bag>();
  detail::require_step_extra<Exec, typename bag::pooling, Weights>();
  detail::require_weight_gradients<Exec, typename bag::pooling, WeightGrads>();
  return detail::step_bags_of<bag>(exec, rule, table, state, indices, offsets, make_ref(pooled_grads),
                                   make_ref(weights), make_ref(weight_grads));
}

}  // namespace ferry
