// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/manifest.hpp>
#include <ferry/optim/detail/visit_options.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
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
std::string option_name(std::string_view names, std::size_t place, std::size_t count);

/// A number as the 8 bytes that a fact keeps.
template <class T>
std::uint64_t fact_bits(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  else
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
template <class T>
void set_number(T& number, std::uint64_t bits) {
  if constexpr (std::is_floating_point_v<T>)
    number = static_cast<T>(std::bit_cast<double>(bits));
  else
    number = static_cast<T>(static_cast<std::int64_t>(bits));
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
  std::vector<manifest_fact> facts;
  visit_options(rule, [&]<class Option>(const Option& option) {
    static_assert(
        std::is_arithmetic_v<Option> || is_number_list<Option>,
        "ferry: a checkpoint saves options that are numbers or std::arrays of them; give this rule or transform a member visit_options(visit) that calls visit for its options of these types.");
    manifest_fact& fact = facts.emplace_back();
    if constexpr (std::is_arithmetic_v<Option>) {
      fact.kind = kind_of_number<Option>();
      fact.numbers.push_back(fact_bits(option));
    } else {
      fact.kind = kind_of_number<typename Option::value_type>();
      for (const auto number : option) fact.numbers.push_back(fact_bits(number));
    }
  });
  for (std::size_t i = 0; i < facts.size(); ++i) facts[i].name = prefix + option_name(names, i, facts.size());
  return facts;
}

/// Sets an option from a fact with as many numbers.
template <class Option>
void set_option(Option& option, const manifest_fact& fact) {
  if constexpr (std::is_arithmetic_v<Option>)
    set_number(option, fact.numbers[0]);
  else
    for (std::size_t i = 0; i < option.size(); ++i) set_number(option[i], fact.numbers[i]);
}

}  // namespace ferry::detail
