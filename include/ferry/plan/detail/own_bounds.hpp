// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/policy/bounds.hpp>

#include <type_traits>

namespace ferry {

namespace detail {

/// The bounds policies as values. A policy of the user may resolve an index to any row.
enum class bounds_kind : unsigned char { check, clamp, skip, unchecked, of_user };

template <class Bounds>
consteval bounds_kind kind_of_bounds() {
  if (std::is_same_v<Bounds, bounds::check>) return bounds_kind::check;
  if (std::is_same_v<Bounds, bounds::clamp>) return bounds_kind::clamp;
  if (std::is_same_v<Bounds, bounds::skip>) return bounds_kind::skip;
  if (std::is_same_v<Bounds, bounds::unchecked>) return bounds_kind::unchecked;
  return bounds_kind::of_user;
}

}  // namespace detail

namespace kernels {

/// True if `Bounds` is one of the library's own policies.
template <class Bounds>
inline constexpr bool is_own_bounds = (ferry::detail::kind_of_bounds<Bounds>() !=
                                       ferry::detail::bounds_kind::of_user);

}  // namespace kernels
}  // namespace ferry
