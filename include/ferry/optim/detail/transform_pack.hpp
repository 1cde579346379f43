// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <tuple>
#include <type_traits>

namespace ferry::optim {

/// The defaults of a transform's kernel part, which change nothing. A transform hides any of
///   takes(row)                   whether the row is updated at all
///   gradient(g)                  the gradient of an element
///   gradient_factor(squares, unit)
///                                with clips_norm: a factor for the row's gradient, whose sum of squares is
///                                squares * unit^2; the unit is 1 unless such a sum overflows or underflows
///   changed(before, after, row)  an element's weight, from its weights before and after the rule; under
///                                step_count::catch_up each missed step is then computed in full
///   weight_factor(squares, unit) with limits_norm: a factor for the new weights, likewise
/// Without a parameter `unit` both factors get the sum itself, which may be infinite.
struct transform_defaults {
  static constexpr bool clips_norm = false;
  static constexpr bool limits_norm = false;
  /// For step_count::catch_up: whether the transform changes rows that a step does not name only by
  /// changed(), element by element.
  static constexpr bool allows_catch_up = false;

  KOKKOS_FORCEINLINE_FUNCTION static bool takes(std::int64_t) { return true; }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute gradient(const Compute& g) {
    return g;
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute changed(const Compute&, const Compute& after, std::int64_t) {
    return after;
  }
};

}  // namespace ferry::optim

namespace ferry::kernels {

/// True if a transform has a changed() of its own. It hides one that the transform inherits, so
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
struct transform_pack<> : optim::transform_defaults {
  static constexpr int clip_norms = 0;
  static constexpr int norm_limits = 0;
  static constexpr bool allows_catch_up = true;
  static constexpr bool changes = false;

  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute before_norm(const Compute& g) {
    return g;
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute gradient(const Compute& g, const Compute&) {
    return g;
  }
};

template <class First, class... Rest>
struct transform_pack<First, Rest...> {
  static constexpr int clip_norms = transform_pack<Rest...>::clip_norms + (First::clips_norm ? 1 : 0);
  static constexpr int norm_limits = transform_pack<Rest...>::norm_limits + (First::limits_norm ? 1 : 0);
  static constexpr bool allows_catch_up = First::allows_catch_up && transform_pack<Rest...>::allows_catch_up;
  /// True if changed() is more than its default.
  static constexpr bool changes = changes_weights<First>() || transform_pack<Rest...>::changes;

  First first;
  transform_pack<Rest...> tail;

  KOKKOS_FORCEINLINE_FUNCTION bool takes(std::int64_t row) const {
    return first.takes(row) && tail.takes(row);
  }
  /// The gradient as input of the transform that clips its norm.
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute before_norm(const Compute& g) const {
    if constexpr (First::clips_norm)
      return g;
    else
      return tail.before_norm(first.gradient(g));
  }
  /// The gradient as input of the rule, scaled by the factor of the transform that clips its norm.
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g, const Compute& factor) const {
    if constexpr (First::clips_norm)
      return tail.gradient(g * factor, factor);
    else
      return tail.gradient(first.gradient(g), factor);
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute changed(const Compute& before, const Compute& after,
                                              std::int64_t row) const {
    return tail.changed(before, first.changed(before, after, row), row);
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute gradient_factor(const Compute& squares, const Compute& unit) const {
    if constexpr (!First::clips_norm)
      return tail.gradient_factor(squares, unit);
    else if constexpr (requires { first.gradient_factor(squares, unit); })
      return first.gradient_factor(squares, unit);
    else
      return first.gradient_factor(squares * unit * unit);
  }
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION Compute weight_factor(const Compute& squares, const Compute& unit) const {
    if constexpr (!First::limits_norm)
      return tail.weight_factor(squares, unit);
    else if constexpr (requires { first.weight_factor(squares, unit); })
      return first.weight_factor(squares, unit);
    else
      return first.weight_factor(squares * unit * unit);
  }
};

inline transform_pack<> pack_transforms() { return {}; }
template <class First, class... Rest>
transform_pack<First, Rest...> pack_transforms(const First& first, const Rest&... tail) {
  return {first, pack_transforms(tail...)};
}

}  // namespace ferry::kernels

/// The memory spaces of the arrays that transforms read, and the execution spaces that reach them.
namespace ferry::detail {

template <class Transform>
inline constexpr bool reads_array = requires {
  typename Transform::memory_space;
};
template <class Transform>
consteval auto space_in() {
  if constexpr (reads_array<Transform>)
    return std::type_identity<typename Transform::memory_space>{};
  else
    return std::type_identity<pageable_space>{};
}
/// The memory space of the array that a transform reads; pageable memory for a transform that reads none.
template <class Transform>
using space_of_transform = typename decltype(space_in<Transform>())::type;

template <class Rule>
struct transform_spaces : transform_spaces<optim::chain<Rule>> {};
template <class Rule, class... Transforms>
struct transform_spaces<optim::chain<Rule, Transforms...>> {
  /// True if host threads can run the steps.
  static constexpr bool on_host =
      ((space_of_transform<Transforms>::is_host_accessible || device_is_host<Transforms>)&&...);
  /// True if transforms read pageable memory, which a device may not reach.
  static constexpr bool any_pageable =
      ((reads_array<Transforms> && std::is_same_v<space_of_transform<Transforms>, pageable_space>) || ...);
  template <class Exec>
  static constexpr bool reached_by = (may_dereference<Exec, space_of_transform<Transforms>>() && ...);
};

/// Checks the options of a rule and of its transforms, which `table` as a whole must fit, and their arrays.
template <class Rule, class Table>
void require_optimizer(const char* verb, const Rule& optimizer, const Table& table) {
  using parts = optim::detail::transforms_of<Rule>;
  const auto require = [&]<class Transform>(const Transform& transform) {
    transform.check();
    transform.for_each_array([&](const auto& array) {
      static_assert(std::is_same_v<typename std::remove_cvref_t<decltype(array)>::memory_space,
                                   space_of_transform<Transform>>,
                    "ferry: a transform that reads an array needs the name of its memory_space.");
      if (array.rows() != table.rows() || array.width() != 1)
        throw invalid_argument(joined("ferry::", verb, ": ", Transform::name, " was given ", array.describe(),
                                      ", but needs one number for each row of ", table.describe()));
    });
  };
  parts::rule_in(optimizer).check();
  std::apply([&](const auto&... transform) { (require(transform), ...); }, parts::transforms_in(optimizer));
}

/// Checks the options of a rule and of its transforms for a step that is computed in Compute. The library's
/// rules have ranges(), from which check_in_float() follows.
template <class Compute, class Rule>
void require_options_in(const Rule& optimizer) {
  if constexpr (std::is_same_v<Compute, float>) {
    using parts = optim::detail::transforms_of<Rule>;
    const auto check = [](const auto& part) {
      if constexpr (requires { part.check_in_float(); })
        part.check_in_float();
      else if constexpr (requires { optim::require_options_in_float(part.name, part.ranges()); })
        optim::require_options_in_float(part.name, part.ranges());
    };
    check(parts::rule_in(optimizer));
    std::apply([&](const auto&... transform) { (check(transform), ...); }, parts::transforms_in(optimizer));
  }
}

}  // namespace ferry::detail
