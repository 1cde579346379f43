#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace ferry {

/// A row rule: options as data, a Hana tuple of state fields, and `coefficients<Compute>(step)`, which gives
/// the pure per-element update of one step as a small functor with
///   apply(Compute& weight, Compute gradient, Compute (&state)[N])
/// Inactive fields may only stand behind active ones; the update is compiled for each number of fields in
/// [min_fields, number of fields] and finds its N that way.
template <class Rule>
concept Optimizer = requires(const Rule& rule, std::int64_t step) {
  { Rule::name } -> std::convertible_to<std::string_view>;
  { Rule::min_fields } -> std::convertible_to<int>;
  rule.fields();
  rule.check();
  rule.template coefficients<float>(step);
  rule.template coefficients<double>(step);
};

}  // namespace ferry
