// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// True if a transform has a changed() of its own. It takes the place of one that the transform inherits, so
/// the two have one address unless it does.
template <class Transform>
consteval bool changes_weights() {
  if constexpr (requires {
                  requires std::is_same_v<decltype(&Transform::template changed<float>),
                                          decltype(&optim::transform_defaults::changed<float>)>;
                })
    return &Transform::template changed<float> != &optim::transform_defaults::changed<float>;
  else
    return true;
}

/// The kernel parts of transforms, applied in order; see optim::transform_defaults.
template <class... Transforms>
struct transform_pack;

template <>
struct transform_pack<> {
  static constexpr bool is_empty = true;
  static constexpr int clip_norms = 0;
  static constexpr int norm_limits = 0;
  static constexpr bool allows_catch_up = true;
  static constexpr bool changes = false;

  KOKKOS_FORCEINLINE_FUNCTION static bool takes(std::int64_t) { return true; }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute before_norm(const Compute& g) {
    return g;
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute gradient(const Compute& g, const Compute&) {
    return g;
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute changed(const Compute&, const Compute& after, std::int64_t) {
    return after;
  }
};

template <class First, class... Rest>
struct transform_pack<First, Rest...> {
  static constexpr bool is_empty = false;
  static constexpr int clip_norms = transform_pack<Rest...>::clip_norms + (First::clips_norm ? 1 : 0);
  static constexpr int norm_limits = transform_pack<Rest...>::norm_limits + (First::limits_norm ? 1 : 0);
  static constexpr bool allows_catch_up = First::allows_catch_up && transform_pack<Rest...>::allows_catch_up;
  /// True if changed() is more than its default.
  static constexpr bool changes = changes_weights<First>() || transform_pack<Rest...>::changes;

  First first;
  transform_pack<Rest...> rest;

  KOKKOS_FORCEINLINE_FUNCTION bool takes(std::int64_t row) const {
    return first.takes(row) && rest.takes(row);
  }
  /// The gradient as input of the transform that clips its norm.
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute before_norm(const Compute& g) const {
    if constexpr (First::clips_norm)
      return g;
    else
      return rest.before_norm(first.gradient(g));
  }
  /// The gradient as input of the rule, scaled by the factor of the transform that clips its norm.
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g, const Compute& factor) const {
    if constexpr (First::clips_norm)
      return rest.gradient(g * factor, factor);
    else
      return rest.gradient(first.gradient(g), factor);
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute changed(const Compute& before, const Compute& after,
                                              std::int64_t row) const {
    return rest.changed(before, first.changed(before, after, row), row);
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute gradient_factor(const Compute& squares, const Compute& unit) const {
    if constexpr (!First::clips_norm)
      return rest.gradient_factor(squares, unit);
    else if constexpr (requires { first.gradient_factor(squares, unit); })
      return first.gradient_factor(squares, unit);
    else
      return first.gradient_factor(squares * unit * unit);
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute weight_factor(const Compute& squares, const Compute& unit) const {
    if constexpr (!First::limits_norm)
      return rest.weight_factor(squares, unit);
    else if constexpr (requires { first.weight_factor(squares, unit); })
      return first.weight_factor(squares, unit);
    else
      return first.weight_factor(squares * unit * unit);
  }
};

inline transform_pack<> pack_transforms() { return {}; }
template <class First, class... Rest>
transform_pack<First, Rest...> pack_transforms(const First& first, const Rest&... rest) {
  return {first, pack_transforms(rest...)};
}

}  // namespace ferry::kernels
