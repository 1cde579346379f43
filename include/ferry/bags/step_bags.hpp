// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/bags/detail/step_on_bags.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/ticket.hpp>

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
template <class Exec, class Rule, class Table, class StateRule, class StateType, MemorySpace StateSpace,
          class Indices, class Offsets, class Grads, class... Policies>
  requires(
      detail::takes_bags<Table>&& detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&, Table,
                                               optim::state<StateRule, StateType, StateSpace>&,
                                               const Indices&, const Offsets&, const Grads&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, Table&& table, optim::state<StateRule, StateType, StateSpace>& state,
    const Indices& indices, const Offsets& offsets, const Grads& pooled_grads, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_step<Exec, Rule, Table, StateRule, Indices, Offsets, Grads, bag>();
  return detail::step_bags_of<bag>(exec, rule, table, state, indices, offsets, make_ref(pooled_grads),
                                   detail::no_array{}, detail::no_array{});
}

/// As above, with one more array:
///
///   extra     under pooling::sum and pooling::mean the weights of the positions, by which the shares are
///             multiplied. Under pooling::max the positions of the maxima, as gather_bags wrote them.
template <class Exec, class Rule, class Table, class StateRule, class StateType, MemorySpace StateSpace,
          class Indices, class Offsets, class Grads, class Extra, class... Policies>
  requires(detail::takes_bags<Table>&& detail::AnArray<Extra>&&
               detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&, Table,
                            optim::state<StateRule, StateType, StateSpace>&, const Indices&, const Offsets&,
                            const Grads&, const Extra&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, Table&& table, optim::state<StateRule, StateType, StateSpace>& state,
    const Indices& indices, const Offsets& offsets, const Grads& pooled_grads, const Extra& extra,
    Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_step<Exec, Rule, Table, StateRule, Indices, Offsets, Grads, bag>();
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
template <class Exec, class Rule, class Table, class StateRule, class StateType, MemorySpace StateSpace,
          class Indices, class Offsets, class Grads, class Weights, class WeightGrads, class... Policies>
  requires(detail::takes_bags<Table>&& detail::AnArray<Weights>&& detail::AnArray<WeightGrads>&&
               detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&, Table,
                            optim::state<StateRule, StateType, StateSpace>&, const Indices&, const Offsets&,
                            const Grads&, const Weights&, WeightGrads, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, Table&& table, optim::state<StateRule, StateType, StateSpace>& state,
    const Indices& indices, const Offsets& offsets, const Grads& pooled_grads, const Weights& weights,
    WeightGrads&& weight_grads, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_step<Exec, Rule, Table, StateRule, Indices, Offsets, Grads, bag>();
  detail::require_step_extra<Exec, typename bag::pooling, Weights>();
  detail::require_weight_gradients<Exec, typename bag::pooling, WeightGrads>();
  return detail::step_bags_of<bag>(exec, rule, table, state, indices, offsets, make_ref(pooled_grads),
                                   make_ref(weights), make_ref(weight_grads));
}

}  // namespace ferry
