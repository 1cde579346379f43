// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/manifest.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// The options of rules and transforms as named numbers.
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

/// Name number `place` of a list of option_names; "option <place>" where the list has other than `count`.
template <class Dependent = void>
std::string option_name(std::string_view names, std::size_t place, std::size_t count) {
  std::size_t found = names.empty() ? 0 : 1;
  for (const char each : names) found += each == ' ' ? 1 : 0;
  if (found != count) return "option " + std::to_string(place);
  for (; place != 0; --place) names.remove_prefix(names.find(' ') + 1);
  return std::string(names.substr(0, names.find(' ')));
}

/// Converts to any type, to count the members of an aggregate.
struct any_member {
  template <class T>
  operator T() const;  // never defined
};

template <class T, class... Members>
consteval std::size_t count_members() {
  if constexpr (requires { T{Members{}..., any_member{}}; })
    return count_members<T, Members..., any_member>();
  else
    return sizeof...(Members);
}

/// Calls visit(member) for the members of an aggregate, in their order.
template <class Aggregate, class Visit>
void visit_members(Aggregate& of, const Visit& visit) {
  constexpr std::size_t members = count_members<std::remove_const_t<Aggregate>>();
  static_assert(
      members <= 12,
      "ferry: a checkpoint saves rules and transforms of at most 12 options; give this one a member visit_options(visit) that calls visit for each.");
  const auto each = [&](auto&... member) { (visit(member), ...); };
  if constexpr (members == 1) {
    auto& [a] = of;
    each(a);
  } else if constexpr (members == 2) {
    auto& [a, b] = of;
    each(a, b);
  } else if constexpr (members == 3) {
    auto& [a, b, c] = of;
    each(a, b, c);
  } else if constexpr (members == 4) {
    auto& [a, b, c, d] = of;
    each(a, b, c, d);
  } else if constexpr (members == 5) {
    auto& [a, b, c, d, e] = of;
    each(a, b, c, d, e);
  } else if constexpr (members == 6) {
    auto& [a, b, c, d, e, f] = of;
    each(a, b, c, d, e, f);
  } else if constexpr (members == 7) {
    auto& [a, b, c, d, e, f, g] = of;
    each(a, b, c, d, e, f, g);
  } else if constexpr (members == 8) {
    auto& [a, b, c, d, e, f, g, h] = of;
    each(a, b, c, d, e, f, g, h);
  } else if constexpr (members == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = of;
    each(a, b, c, d, e, f, g, h, i);
  } else if constexpr (members == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = of;
    each(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (members == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = of;
    each(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (members == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = of;
    each(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

/// Calls visit(option) for the options of a rule or a transform: by its member visit_options(visit), or for
/// the members of an aggregate. A class without either has no options that a file keeps.
template <class Rule, class Visit>
void visit_options(Rule& of, const Visit& visit) {
  if constexpr (requires { of.visit_options(visit); })
    of.visit_options(visit);
  else if constexpr (std::is_aggregate_v<std::remove_const_t<Rule>>)
    visit_members(of, visit);
}

template <class T>
inline constexpr bool is_number_list = false;
template <class T, std::size_t N>
inline constexpr bool is_number_list<std::array<T, N>> = std::is_arithmetic_v<T>;

/// A number as the 8 bytes that a fact keeps.
template <class T>
std::uint64_t fact_bits(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  else
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
template <class T>
void set_number(T& to, std::uint64_t bits) {
  if constexpr (std::is_floating_point_v<T>)
    to = static_cast<T>(std::bit_cast<double>(bits));
  else
    to = static_cast<T>(static_cast<std::int64_t>(bits));
}
template <class T>
constexpr manifest_fact::kind_of kind_of_number() {
  return std::is_floating_point_v<T> ? manifest_fact::real
         : std::is_signed_v<T>       ? manifest_fact::whole
                                     : manifest_fact::natural;
}

/// The options as facts named "<prefix><option>".
template <class Rule>
std::vector<manifest_fact> options_of(const Rule& rule, const std::string& prefix, std::string_view names) {
  std::vector<manifest_fact> made;
  visit_options(rule, [&]<class Option>(const Option& option) {
    static_assert(
        std::is_arithmetic_v<Option> || is_number_list<Option>,
        "ferry: a checkpoint saves options that are numbers or std::arrays of them; give this rule or transform a member visit_options(visit) that calls visit for its options of these types.");
    manifest_fact& fact = made.emplace_back();
    if constexpr (std::is_arithmetic_v<Option>) {
      fact.kind = kind_of_number<Option>();
      fact.numbers.push_back(fact_bits(option));
    } else {
      fact.kind = kind_of_number<typename Option::value_type>();
      for (const auto each : option) fact.numbers.push_back(fact_bits(each));
    }
  });
  for (std::size_t i = 0; i < made.size(); ++i) made[i].name = prefix + option_name(names, i, made.size());
  return made;
}

/// Sets an option from a fact with as many numbers.
template <class Option>
void set_option(Option& option, const manifest_fact& from) {
  if constexpr (std::is_arithmetic_v<Option>)
    set_number(option, from.numbers[0]);
  else
    for (std::size_t i = 0; i < option.size(); ++i) set_number(option[i], from.numbers[i]);
}

}  // namespace ferry::detail
