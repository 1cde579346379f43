#pragma once

#include <Kokkos_Core.hpp>

namespace ferry::kernels {

/// Least and largest of a row's elements, infinite where one of them is infinite or not a number.
struct row_range {
  using reducer = Kokkos::MinMax<float>;
  using values = typename reducer::value_type;
  static constexpr float infinity = Kokkos::Experimental::infinity_v<float>;

  KOKKOS_FUNCTION static values nothing() {
    values empty;
    empty.min_val = infinity;
    empty.max_val = -infinity;
    return empty;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void widen(values& of, float value) {
    constexpr float largest = Kokkos::Experimental::finite_max_v<float>;
    const bool finite = value >= -largest && value <= largest;
    const float low = finite ? value : -infinity;
    const float high = finite ? value : infinity;
    of.min_val = low < of.min_val ? low : of.min_val;
    of.max_val = high > of.max_val ? high : of.max_val;
  }
};

}  // namespace ferry::kernels
