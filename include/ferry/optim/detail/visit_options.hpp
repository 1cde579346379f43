// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/require_option.hpp>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

/// The options of rules and transforms, one by one.
namespace ferry::detail {

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

/// Converts to any type but the bases of Aggregate.
template <class Aggregate>
struct any_but_base {
  template <class T>
    requires(!std::is_base_of_v<T, Aggregate>)
  operator T() const;  // never defined
};
template <class T, class... Members>
consteval std::size_t count_members_but_bases() {
  if constexpr (requires { T{Members{}..., any_but_base<T>{}}; })
    return count_members_but_bases<T, Members..., any_but_base<T>>();
  else
    return sizeof...(Members);
}

template <std::size_t>
using any_at = any_member;
/// True if member number Before is an array of several elements, which count_members counts one by one: two
/// numbers in braces take the places of two.
template <class T, std::size_t... Before, std::size_t... After>
consteval bool is_array_member(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{any_at<Before>{}..., {any_member{}, any_member{}}}; }
  &&!requires { T{any_at<Before>{}..., {any_member{}, any_member{}}, any_at<After>{}...}; };
}
template <class T, std::size_t... Place>
consteval bool has_array_member(std::index_sequence<Place...>) {
  return (is_array_member<T>(std::make_index_sequence<Place>(),
                             std::make_index_sequence<sizeof...(Place) - Place - 1>()) ||
          ...);
}

struct visit_nothing {
  template <class Option>
  void operator()(const Option&) const {}
};

inline constexpr std::size_t most_options = 12;  ///< that visit_members names

/// True if visit_options compiles for a rule or a transform: by its own member, or for an aggregate of up to
/// most_options members without bases and arrays.
template <class Rule>
consteval bool has_visible_options() {
  if constexpr (requires(const Rule& rule) { rule.visit_options(visit_nothing{}); }) {
    return true;
  } else if constexpr (std::is_aggregate_v<Rule> && std::is_trivially_copyable_v<Rule>) {
    constexpr std::size_t count = count_members<Rule>();
    if constexpr (count == 0 || count > most_options || count != count_members_but_bases<Rule>())
      return false;
    else
      return !has_array_member<Rule>(std::make_index_sequence<count>());
  } else {
    return false;
  }
}

/// Calls visit(member) for the members of an aggregate, in their order.
template <class Aggregate, class Visit>
void visit_members(Aggregate& aggregate, const Visit& visit) {
  constexpr std::size_t members = count_members<std::remove_const_t<Aggregate>>();
  static_assert(
      members <= most_options,
      "ferry: a checkpoint saves rules and transforms of at most 12 options; give this one a member visit_options(visit) that calls visit for each.");
  const auto visit_all = [&](auto&... member) { (visit(member), ...); };
  if constexpr (members == 1) {
    auto& [a] = aggregate;
    visit_all(a);
  } else if constexpr (members == 2) {
    auto& [a, b] = aggregate;
    visit_all(a, b);
  } else if constexpr (members == 3) {
    auto& [a, b, c] = aggregate;
    visit_all(a, b, c);
  } else if constexpr (members == 4) {
    auto& [a, b, c, d] = aggregate;
    visit_all(a, b, c, d);
  } else if constexpr (members == 5) {
    auto& [a, b, c, d, e] = aggregate;
    visit_all(a, b, c, d, e);
  } else if constexpr (members == 6) {
    auto& [a, b, c, d, e, f] = aggregate;
    visit_all(a, b, c, d, e, f);
  } else if constexpr (members == 7) {
    auto& [a, b, c, d, e, f, g] = aggregate;
    visit_all(a, b, c, d, e, f, g);
  } else if constexpr (members == 8) {
    auto& [a, b, c, d, e, f, g, h] = aggregate;
    visit_all(a, b, c, d, e, f, g, h);
  } else if constexpr (members == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = aggregate;
    visit_all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (members == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = aggregate;
    visit_all(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (members == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = aggregate;
    visit_all(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (members == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = aggregate;
    visit_all(a, b, c, d, e, f, g, h, i, j, k, l);
  }
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
