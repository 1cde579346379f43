// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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

/// For a rule's or a transform's check_in_float(): throws invalid_argument with its name, the option and the
/// value for one that is 0 or infinite in float, but not in double. Options are names and values.
void require_in_float(std::string_view rule, std::initializer_list<std::pair<const char*, double>> options);

/// Throws for an option whose number is `effect` in float; null is none.
void require_float(std::string_view rule, const char* option, double value, const char* effect);

}  // namespace ferry::optim

/// The options of rules and transforms, one by one.
namespace ferry::detail {

/// The names of a rule's or a transform's options, in the order of its members, separated by spaces. Empty
/// for a type that ferry does not know; its options are then numbered.
inline constexpr std::string_view option_names(std::string_view rule) {
  struct known_rule {
    std::string_view name, options;
  };
  constexpr known_rule known[] = {
      {"adadelta", "lr rho eps weight_decay maximize"},
      {"adagrad", "lr lr_decay weight_decay initial_accumulator_value eps maximize"},
      {"adam", "lr betas eps weight_decay amsgrad maximize"},
      {"adamax", "lr betas eps weight_decay maximize"},
      {"adamw", "lr betas eps weight_decay amsgrad maximize"},
      {"asgd", "lr lambd alpha t0 weight_decay maximize"},
      {"ftrl", "lr beta l1 l2 initial_accumulator_value maximize"},
      {"lamb", "lr betas eps weight_decay maximize"},
      {"lars", "lr momentum weight_decay trust_coefficient eps maximize"},
      {"lion", "lr betas weight_decay maximize"},
      {"nadam", "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize"},
      {"partial_rowwise_adam", "lr betas eps weight_decay maximize"},
      {"rmsprop", "lr alpha eps weight_decay momentum centered maximize"},
      {"rowwise_adagrad", "lr weight_decay initial_accumulator_value eps maximize"},
      {"rprop", "lr etas step_sizes maximize"},
      {"sgd", "lr momentum dampening weight_decay nesterov maximize"},
      {"sparse_adam", "lr betas eps maximize"},
      {"clip_norm", "max_norm"},
      {"clip_value", "limit"},
      {"grad_scale", "scale"},
      {"max_norm", "limit"},
  };
  for (const auto& [name, options] : known)
    if (name == rule) return options;
  return {};
}

/// Name `number` of a list of option_names; empty if the list has other than `count` names.
std::string_view listed_name(std::string_view names, std::size_t number, std::size_t count);

/// As listed_name; "option <number>" if the list has other than `count` names.
std::string option_name(std::string_view names, std::size_t number, std::size_t count);

/// Converts to any type but the bases of Aggregate, to count the members of an aggregate.
template <class Aggregate = void>
struct any_member {
  template <class T>
    requires(!std::is_base_of_v<T, Aggregate>)
  operator T() const;  // never defined
};
/// Bases count as members if Any converts to them.
template <class T, class Any = any_member<>, class... Members>
consteval std::size_t count_members() {
  if constexpr (requires { T{Members{}..., Any{}}; })
    return count_members<T, Any, Members..., Any>();
  else
    return sizeof...(Members);
}

inline constexpr std::size_t most_options = 12;  ///< that visit_members names

/// Calls visit(member) for the members of an aggregate, in their order.
template <class Aggregate, class Visit>
void visit_members(Aggregate& aggregate, const Visit& visit) {
  constexpr std::size_t members = count_members<std::remove_const_t<Aggregate>>();
  static_assert(
      members <= most_options,
      "ferry: a checkpoint saves rules and transforms of at most 12 options; give this one a member visit_options(visit) that calls visit for each.");
  const auto visit_all = [&](auto&... member) { (visit(member), ...); };
#define FERRY_VISIT_MEMBERS(COUNT, ...) \
  if constexpr (members == COUNT) {     \
    auto& [__VA_ARGS__] = aggregate;    \
    visit_all(__VA_ARGS__);             \
  }
  FERRY_VISIT_MEMBERS(1, a)
  FERRY_VISIT_MEMBERS(2, a, b)
  FERRY_VISIT_MEMBERS(3, a, b, c)
  FERRY_VISIT_MEMBERS(4, a, b, c, d)
  FERRY_VISIT_MEMBERS(5, a, b, c, d, e)
  FERRY_VISIT_MEMBERS(6, a, b, c, d, e, f)
  FERRY_VISIT_MEMBERS(7, a, b, c, d, e, f, g)
  FERRY_VISIT_MEMBERS(8, a, b, c, d, e, f, g, h)
  FERRY_VISIT_MEMBERS(9, a, b, c, d, e, f, g, h, i)
  FERRY_VISIT_MEMBERS(10, a, b, c, d, e, f, g, h, i, j)
  FERRY_VISIT_MEMBERS(11, a, b, c, d, e, f, g, h, i, j, k)
  FERRY_VISIT_MEMBERS(12, a, b, c, d, e, f, g, h, i, j, k, l)
#undef FERRY_VISIT_MEMBERS
}

/// Calls visit(option) for the options of a rule or a transform: by its member visit_options(visit), or for
/// the members of an aggregate. A class without either has no options that a file keeps.
template <class Rule, class Visit>
void visit_options(Rule& aggregate, const Visit& visit) {
  if constexpr (requires { aggregate.visit_options(visit); })
    aggregate.visit_options(visit);
  else if constexpr (std::is_aggregate_v<std::remove_const_t<Rule>>)
    visit_members(aggregate, visit);
}

template <class T>
inline constexpr bool is_number_list = false;
template <class T, std::size_t N>
inline constexpr bool is_number_list<std::array<T, N>> = std::is_arithmetic_v<T>;

template <>
inline constexpr bool is_number_list<optim::decay_rates> = true;

}  // namespace ferry::detail
