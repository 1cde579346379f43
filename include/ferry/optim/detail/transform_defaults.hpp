// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

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
