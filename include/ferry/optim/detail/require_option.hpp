// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

/// The options of rules and transforms, and the ranges in which they must be.
namespace ferry::optim {

/// For a rule's check(): throws invalid_argument with rule, option and value if `holds` is false or the value
/// is not a number.
void require_option(std::string_view rule, const char* option, double value, bool holds, const char* range);

/// For limits that must be >= 0, and may be infinite; refuses NaN.
void require_not_negative(std::string_view rule, const char* option, double value);

/// For decay rates of moving averages.
void require_rate(std::string_view rule, const char* option, double value);

/// The decay rates of two moving averages. {0.9} does not compile: of an array the second would then be 0.
struct decay_rates : std::array<double, 2> {
  constexpr decay_rates(double first, double second) : std::array<double, 2>{first, second} {}
  constexpr decay_rates(const std::array<double, 2>& rates) : std::array<double, 2>(rates) {}
  template <class Number>
    requires(std::is_arithmetic_v<Number>)
  constexpr decay_rates(Number) : std::array<double, 2>{} {
    static_assert(sizeof(Number) == 0, "ferry: betas are two decay rates; give both, {0.9, 0.999} say.");
  }
};

/// Options, numbers in double, that a step refuses if it is computed in float.
enum class float_range : std::uint8_t {
  exact,       ///< one that is 0 or infinite in float
  may_vanish,  ///< one that is infinite in float
  any          ///< none: kernels do not read the option
};

/// An option and its range.
struct option_range {
  const char* name;
  double value;
  bool holds;         ///< true if the value is in the range
  const char* range;  ///< in words
  float_range in_float = float_range::exact;
};

inline option_range not_negative(const char* name, double value, float_range in_float = float_range::exact) {
  return {name, value, value >= 0.0, ">= 0", in_float};
}
/// A decay rate of a moving average.
inline option_range decay_rate(const char* name, double value) {
  return {name, value, value >= 0.0 && value < 1.0, "in [0, 1)"};
}
/// A schedule may end in rates that are 0 in float: such steps change as little as those of the smallest
/// rate, so they are taken.
inline option_range learning_rate(double lr) { return not_negative("lr", lr, float_range::may_vanish); }

/// The options of a rule with two moving averages.
template <class Rule>
std::array<option_range, 5> adam_options(const Rule& rule) {
  double weight_decay = 0.0;
  if constexpr (requires { rule.weight_decay; }) weight_decay = rule.weight_decay;
  return {learning_rate(rule.lr), decay_rate("betas[0]", rule.betas[0]),
          decay_rate("betas[1]", rule.betas[1]), not_negative("eps", rule.eps),
          not_negative("weight_decay", weight_decay)};
}

/// For check(): throws invalid_argument for the first option that is outside of its range or infinite.
void require_options(std::string_view rule, std::span<const option_range> options);
/// For check_in_float(): throws invalid_argument for the first option that float can't hold.
void require_options_in_float(std::string_view rule, std::span<const option_range> options);

/// How a number overflows or underflows in float, or null. Infinity and 0 themselves do neither.
/// @{
const char* float_overflow(double value);
const char* float_underflow(double value);
/// @}

/// An option and its value.
struct option_value {
  const char* name;
  double value;
};
/// For a rule's or a transform's check_in_float(): throws invalid_argument with its name, the option and the
/// value for one that is 0 or infinite in float, but not in double.
void require_in_float(std::string_view rule, std::initializer_list<option_value> options);

/// Throws for an option whose number is `effect` in float; null is none.
void require_float(std::string_view rule, const char* option, double value, const char* effect);

}  // namespace ferry::optim
