// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

namespace optim {
struct field;
struct row_field;
}  // namespace optim

namespace detail {

/// The description of a rule, apart from its update.
template <class Rule>
concept DescribesRule = requires(const Rule& rule, std::int64_t step) {
  { Rule::name } -> std::convertible_to<std::string_view>;
  { Rule::min_fields } -> std::convertible_to<int>;
  rule.fields();
  rule.check();
  rule.template coefficients<float>(step);
  rule.template coefficients<double>(step);
};

/// The update of one step.
template <class Rule, class Compute>
using update_of =
    std::remove_cvref_t<decltype(std::declval<const Rule&>().template coefficients<Compute>(std::int64_t{}))>;

/// The number of fields of a kind in a tuple.
template <class Kind, class Fields>
inline constexpr int fields_in = 0;
template <class Kind, template <class...> class Tuple, class... Fields>
inline constexpr int fields_in<Kind, Tuple<Fields...>> = (0 + ... + (std::is_same_v<Kind, Fields> ? 1 : 0));
template <class Rule, class Kind>
inline constexpr int fields_of =
    fields_in<Kind, std::remove_cvref_t<decltype(std::declval<const Rule&>().fields())>>;

/// True if an update looks at the row as a whole.
template <class Update>
concept SumsRows = requires {
  Update::sums;
};

/// True if the sums of an update are sums of squares.
template <class Update>
concept SumsSquares = requires {
  requires Update::sums_squares;
};

/// The calls of kernels, for an update with N fields, R row fields and S sums.
/// @{
template <class Update, class Compute, int N>
concept UpdatesElements = requires(const Update& update, Compute& weight, Compute gradient,
                                   Compute (&state)[N]) {
  update.apply(weight, gradient, state);
};
template <class Update, class Compute, int N, int R, int S>
concept UpdatesRows = requires(const Update& update, Compute& weight, Compute number, Compute (&state)[N],
                               Compute (&row)[R], Compute (&sums)[S]) {
  update.measure(weight, number, std::as_const(state), std::as_const(row), sums);
  update.apply(weight, number, state, std::as_const(sums));
}
&&(!SumsSquares<Update> ||
   requires(const Update& update, Compute number, Compute (&row)[R], Compute (&sums)[S]) {
     update.finalize_sums(sums, std::as_const(sums), number, row);
   }) &&
    (SumsSquares<Update> || requires(const Update& update, Compute number, Compute (&row)[R],
                                     Compute (&sums)[S]) { update.finalize_sums(sums, number, row); });
/// @}

/// Kernels pass arrays of at least one element.
consteval int room_for(int count) { return count < 1 ? 1 : count; }

template <class Rule, class Compute, int... More>
consteval bool can_update(std::integer_sequence<int, More...>) {
  using update = update_of<Rule, Compute>;
  if constexpr (SumsRows<update>)
    return update::sums >= 1 &&
           (UpdatesRows<update, Compute, room_for(Rule::min_fields + More),
                        room_for(fields_of<Rule, optim::row_field>), room_for(update::sums)> &&
            ...);
  else
    return (UpdatesElements<update, Compute, room_for(Rule::min_fields + More)> && ...);
}
/// True if kernels can call the rule's update, for each number of fields that may be active. True for a rule
/// with an impossible number of fields, which another sentence refuses.
template <class Rule, class Compute>
consteval bool can_update() {
  constexpr int min_count = Rule::min_fields, max_count = fields_of<Rule, optim::field>;
  if constexpr (min_count < 0 || min_count > max_count)
    return true;
  else
    return can_update<Rule, Compute>(std::make_integer_sequence<int, max_count - min_count + 1>());
}

}  // namespace detail

/// The rule of an optimizer: its options are data members, and these members describe it to the library.
///
///   name                         text for labels and messages
///   min_fields                   least number of active state fields, over all options
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
/// It is compiled for each number N of active fields in [min_fields, number of fields], 1 in place of 0;
/// state[i] is the i-th active field. More members are optional. at_rest and decay_state let
/// step_count::catch_up skip steps without a gradient; decay_phase and decay_weight, with decay_state,
/// shorten them.
///
///   by_lanes                   true if a host may apply the update to several elements at once. Then apply
///                              is template <int N, class Number>; Number has arithmetic with Compute, and
///                              takes square_root, either, magnitude and sign_of of ferry::optim in place of
///                              functions and branches
///   at_rest(weight, state)     whether no later step without a gradient changes the weight, at any lr up to
///                              this one
///   decay_state(state, steps)  applies that number of steps without a gradient to the state
///   decay_phase(weight, state, steps)
///                              how many of the next `steps` steps without a gradient change the weight as
///                              decay_weight does, with equal bits, at any lr up to this one
///   decay_weight(weight)       the decay of one step; depends on options, not on the number of the step.
///                              With by_lanes a template <class Number>
template <class Rule>
concept Optimizer = detail::DescribesRule<Rule> &&
    detail::can_update<Rule, float>() && detail::can_update<Rule, double>();

/// A rule that reduces a whole row before it changes an element. Its update has a constant `sums`, the number
/// of sums over the row, and these members, R being the number of row fields or 1.
///
///   measure(weight, gradient, state, const Compute (&row)[R], Compute (&part)[sums]) const
///                                                                 the terms of one element; changes nothing
///   finalize_sums(Compute (&total)[sums], width, Compute (&row)[R]) const
///                                                                 once per row: updates the row fields and
///                                                                 turns the sums into what apply needs
///   apply(weight, gradient, state, const Compute (&total)[sums]) const
///                                                                 the update of an element
///
/// With `sums_squares` = true, measure gives numbers whose squares are summed, and finalize_sums has one more
/// parameter:
///
///   finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], width, Compute (&row)[R]) const
///
/// A sum of squares is total[s] * unit[s]^2. The unit is 1, or a power of two if such squares overflow or
/// underflow.
template <class Rule>
concept RowOptimizer = Optimizer<Rule> && detail::SumsRows<detail::update_of<Rule, float>>;

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
