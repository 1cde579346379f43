#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace ferry {

/// An optimizer's rule: options as data, a Hana tuple of state fields, and `coefficients<Compute>(step)`, which gives
/// the pure per-element update of one step as a small functor with
///   apply(Compute& weight, Compute gradient, Compute (&state)[N]) const
/// The update is compiled for each number of active fields in [min_fields, number of fields] and finds its N that way;
/// state[i] is the i-th of them.
template <class Rule>
concept Optimizer = requires(const Rule& rule, std::int64_t step) {
  { Rule::name } -> std::convertible_to<std::string_view>;
  { Rule::min_fields } -> std::convertible_to<int>;
  rule.fields();
  rule.check();
  rule.template coefficients<float>(step);
  rule.template coefficients<double>(step);
};

/// A rule that looks at a row as a whole before it changes an element: its update adds `sums` numbers up over the row,
///   measure(weight, gradient, state, row, Compute (&part)[sums])   what one element adds; changes nothing
///   settle(Compute (&total)[sums], width, Compute (&row)[R])       once for each row: updates the row's own state, the
///                                                                  row_fields, and turns the sums into what apply needs
///   apply(weight, gradient, state, const Compute (&total)[sums])   as for any rule
template <class Rule>
concept RowOptimizer = Optimizer<Rule> && requires {
  { Rule::template update<float>::sums } -> std::convertible_to<int>;
};

/// A rule that keeps apart what of its updates depends on the step alone and what a schedule changes between steps, lr say:
///   by_step()                  a small object without the options of the second kind, comparable by ==, whose
///                              at<Compute>(step) gives the former as numbers, terms, comparable by == as well
///   options<Compute, Wide>()   the latter, as kernels take them: at(terms) gives the update of that step, with Wide in the
///                              place of double; a KOKKOS_FUNCTION
/// coefficients<Compute>(step) is options<Compute, double>().at(by_step().at<Compute>(step)). Under step_count::per_row a
/// step of such a rule costs the same whatever options change; of other rules each change makes all updates anew.
template <class Rule>
concept ScheduledOptimizer = Optimizer<Rule> && requires(const Rule& rule, std::int64_t step) {
  { rule.by_step() } -> std::equality_comparable;
  { rule.by_step().template at<double>(step) } -> std::equality_comparable;
  rule.template options<double, double>().at(rule.by_step().template at<double>(step));
};

}  // namespace ferry
