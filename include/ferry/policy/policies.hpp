// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <type_traits>

namespace ferry {

/// Several policies as one argument: `policies<path::staged, bounds::skip>{}`. May be mixed with single
/// policies.
template <class... Ps>
struct policies {};

namespace detail {

/// Flattens bundles into one list.
template <class Done, class... Rest>
struct flatten;
template <class... Done>
struct flatten<policies<Done...>> {
  using type = policies<Done...>;
};
template <class... Done, class... Inner, class... Rest>
struct flatten<policies<Done...>, policies<Inner...>, Rest...>
    : flatten<policies<Done...>, Inner..., Rest...> {};
template <class... Done, class P, class... Rest>
struct flatten<policies<Done...>, P, Rest...> : flatten<policies<Done..., P>, Rest...> {};

template <class... Ps>
using policy_list = typename flatten<policies<>, std::remove_cvref_t<Ps>...>::type;

template <class P, class... Categories>
inline constexpr bool is_one_of = (PolicyOf<P, Categories> || ...);

template <class List, class Category, class Default>
struct select;
template <class Category, class Default>
struct select<policies<>, Category, Default> {
  using type = Default;
};
template <class P, class... Rest, class Category, class Default>
struct select<policies<P, Rest...>, Category, Default> {
  using type = typename std::conditional_t<PolicyOf<P, Category>, std::type_identity<P>,
                                           select<policies<Rest...>, Category, Default>>::type;
};

template <class List>
struct policy_facts;
template <class... Ps>
struct policy_facts<policies<Ps...>> {
  /// True if each policy is of one of these categories.
  template <class... Categories>
  static constexpr bool all_in = (is_one_of<Ps, Categories...> && ...);
  static constexpr bool all_known = all_in<path_category, bounds_category, duplicates_category,
                                           step_count_category, rounding_category, nonfinite_category>;
  template <class Category>
  static constexpr int count = (0 + ... + (PolicyOf<Ps, Category> ? 1 : 0));
};

template <class List, class Category>
struct policies_without;

/// The policies of one call: those passed, else the verb's defaults.
template <class... Ps>
struct chosen_policies {
  using list = policy_list<Ps...>;
  using facts = policy_facts<list>;
  template <class Category, class Default>
  using get = typename select<list, Category, Default>::type;
  template <class Category>
  static constexpr bool names = facts::template count<Category> > 0;
  template <class Category>
  static constexpr bool at_most_one = facts::template count<Category> <= 1;
  /// Facts about the policies of a verb that takes these categories.
  template <class... Categories>
  struct takes {
    static constexpr bool all_known = facts::template all_in<Categories...>;
    static constexpr bool at_most_one = (chosen_policies::template at_most_one<Categories> && ...);
  };
  /// The policies of all other categories.
  template <class Category>
  using without = typename policies_without<list, Category>::type;
};

template <class... Ps, class Category>
struct policies_without<policies<Ps...>, Category> {
  using type = chosen_policies<std::conditional_t<PolicyOf<Ps, Category>, policies<>, Ps>...>;
};

}  // namespace detail
}  // namespace ferry
