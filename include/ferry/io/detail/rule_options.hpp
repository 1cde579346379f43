// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// The options of rules and transforms as named numbers.
namespace ferry::detail {

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
