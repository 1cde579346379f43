// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace ferry {

/// The rule of an optimizer: its options are data members, and these members describe it to the library.
///
///   name                         text for labels and messages
///   min_fields                   fewest active state fields, over all options
///   fields()                     Hana tuple of state fields (torch.optim's names) and their initial values
///   check()                      throws invalid_argument for an option outside of its range
///   check_in_float()             optional: throws for an option that float can't hold; called before a step
///                                that is computed in float
///   coefficients<Compute>(step)  the update of one step, a small functor for kernels; steps count from 1
///
/// The update of an element is a pure function. Compute is float or double.
///
///   apply(Compute& weight, Compute gradient, Compute (&state)[N]) const
///
/// It is compiled for each number N of active fields in [min_fields, number of fields]; state[i] is the i-th
/// active field. More members are optional. at_rest and decay_state let step_count::catch_up skip steps
/// without a gradient.
///
///   by_lanes                   true if a host may apply the update to several elements at once. Then apply
///                              is template <int N, class Number>; Number has arithmetic with Compute, and
///                              takes square_root, either, magnitude and sign_of of ferry::optim in place of
///                              functions and branches
///   at_rest(weight, state)     whether no later step without a gradient changes the weight, at any lr up to
///                              this one
///   decay_state(state, steps)  applies that number of steps without a gradient to the state
template <class Rule>
concept Optimizer = requires(const Rule& rule, std::int64_t step) {
  { Rule::name } -> std::convertible_to<std::string_view>;
  { Rule::min_fields } -> std::convertible_to<int>;
  rule.fields();
  rule.check();
  rule.template coefficients<float>(step);
  rule.template coefficients<double>(step);
};

/// A rule that reduces a whole row before it changes an element. Its update has a constant `sums`, the number
/// of sums over the row, and these members.
///
///   measure(weight, gradient, state, row, Compute (&part)[sums])  the terms of one element; changes nothing
///   finalize_sums(Compute (&total)[sums], width, Compute (&row)[R])
///                                                                 once per row: updates the row fields and
///                                                                 turns the sums into what apply needs
///   apply(weight, gradient, state, const Compute (&total)[sums])  the update of an element
template <class Rule>
concept RowOptimizer = Optimizer<Rule> && requires {
  { Rule::template update<float>::sums } -> std::convertible_to<int>;
};

/// A rule whose update separates into a part that depends on the step alone and options that a schedule may
/// change between steps, such as lr.
///
///   by_step()                 the first part, without scheduled options; comparable by ==
///   by_step().at<C>(step)     its numbers at one step ("terms"); comparable by ==
///   options<C, Wide>()        the scheduled options for kernels; Wide replaces double
///   options<C>().at(terms)    the update of that step; a KOKKOS_FUNCTION
///
/// coefficients<C>(step) equals options<C, double>().at(by_step().at<C>(step)). Under step_count::per_row, a
/// step of such a rule costs the same whichever scheduled option changes. Other rules recompute the updates
/// of all steps.
template <class Rule>
concept ScheduledOptimizer = Optimizer<Rule> && requires(const Rule& rule, std::int64_t step) {
  { rule.by_step() } -> std::equality_comparable;
  { rule.by_step().template at<double>(step) } -> std::equality_comparable;
  rule.template options<double, double>().at(rule.by_step().template at<double>(step));
};

/// A rule that, with some options, changes a weight by a multiple of the gradient and by nothing else. Then
/// the gradients of a row may be applied one by one, see duplicates::sum_any_order.
///
///   is_linear()                       whether it is so with these options
///   weight_per_gradient<C>()          that multiple
template <class Rule>
concept LinearOptimizer = Optimizer<Rule> && requires(const Rule& rule) {
  { rule.is_linear() } -> std::convertible_to<bool>;
  rule.template weight_per_gradient<float>();
};

}  // namespace ferry
