// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <string>
#include <tuple>
#include <type_traits>

/// The memory spaces of the arrays that transforms read, and the execution spaces that reach them.
namespace ferry::detail {

/// The memory space of the array that a transform reads; pageable memory for a transform that reads none.
template <class Transform>
struct space_of_transform {
  using type = pageable_space;
  static constexpr bool reads_pageable = false;
};
template <class Transform>
  requires requires { typename Transform::memory_space; }
struct space_of_transform<Transform> {
  using type = typename Transform::memory_space;
  static constexpr bool reads_pageable = std::is_same_v<type, pageable_space>;
};
template <class Rule>
struct transform_spaces {
  static constexpr bool on_host = true;
  static constexpr bool any_pageable = false;
  template <class Exec>
  static constexpr bool reached_by = true;
};
template <class Rule, class... Transforms>
struct transform_spaces<optim::chain<Rule, Transforms...>> {
  /// True if host threads can run the steps.
  static constexpr bool on_host =
      ((space_of_transform<Transforms>::type::is_host_accessible || device_is_host<Transforms>)&&...);
  /// True if transforms read pageable memory, which a device may not reach.
  static constexpr bool any_pageable = (space_of_transform<Transforms>::reads_pageable || ...);
  template <class Exec>
  static constexpr bool reached_by =
      (may_dereference<Exec, typename space_of_transform<Transforms>::type>() && ...);
};

/// Checks the options of a transform and the extents of its arrays.
template <class Transform, class Table>
void require_transform(const char* verb, const Transform& transform, const Table& table) {
  transform.check();
  transform.for_each_array([&](const auto& array) {
    static_assert(std::is_same_v<typename std::remove_cvref_t<decltype(array)>::memory_space,
                                 typename space_of_transform<Transform>::type>,
                  "ferry: a transform that reads an array needs the name of its memory_space.");
    if (array.rows() != table.rows() || array.width() != 1)
      throw invalid_argument(joined("ferry::", verb, ": ", Transform::name, " was given ", array.describe(),
                                    ", but needs one number for each row of ", table.describe()));
  });
}

/// Checks the options of a rule and of its transforms, which `table` as a whole must fit.
template <class Rule, class Table>
void require_optimizer(const char* verb, const Rule& optimizer, const Table& table) {
  using parts = optim::detail::transforms_of<Rule>;
  parts::rule_in(optimizer).check();
  std::apply([&](const auto&... transform) { (require_transform(verb, transform, table), ...); },
             parts::transforms_in(optimizer));
}

/// Checks the options of a rule and of its transforms for a step that is computed in Compute.
template <class Compute, class Rule>
void require_options_in(const Rule& optimizer) {
  if constexpr (std::is_same_v<Compute, float>) {
    using parts = optim::detail::transforms_of<Rule>;
    const auto check = [](const auto& part) {
      if constexpr (requires { part.check_in_float(); }) part.check_in_float();
    };
    check(parts::rule_in(optimizer));
    std::apply([&](const auto&... transform) { (check(transform), ...); }, parts::transforms_in(optimizer));
  }
}

}  // namespace ferry::detail
