#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <string>
#include <type_traits>

/// Where the arrays lie that transforms read, and who reaches them.
namespace ferry::detail {

/// Where the array that a transform reads lies; pageable memory for a transform that reads none.
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
  /// Whether the host's threads may take the steps.
  static constexpr bool on_host =
      ((space_of_transform<Transforms>::type::is_host_accessible || device_is_host<Transforms>)&&...);
  /// Whether a device may have no access to what they read.
  static constexpr bool any_pageable = (space_of_transform<Transforms>::reads_pageable || ...);
  template <class Exec>
  static constexpr bool reached_by =
      (may_dereference<Exec, typename space_of_transform<Transforms>::type>() && ...);
};

/// Options and extents of a transform.
template <class Transform, class Table>
void require_transform(const Transform& transform, const Table& table) {
  transform.check();
  transform.for_each_array([&](const auto& array) {
    static_assert(std::is_same_v<typename std::remove_cvref_t<decltype(array)>::memory_space,
                                 typename space_of_transform<Transform>::type>,
                  "ferry: a transform that reads an array needs the name of its memory_space.");
    if (array.rows() != table.rows() || array.width() != 1)
      throw invalid_argument("ferry::step: " + std::string(Transform::name) + " was given " +
                             array.describe() + ", but needs one number for each row of " + table.describe());
  });
}

}  // namespace ferry::detail
