// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/exponent_window.hpp>
#include <ferry/optim/detail/number.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::optim {

/// Missed steps between two questions whether elements of a row are idle. The answer for an element depends
/// on that element alone, so results are the same for any tile.
inline constexpr std::int64_t steps_between_asks = 16;

template <class Compute>
[[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool is_between(const Compute& x, double least, double most) {
  return both(x >= Compute(least), x <= Compute(most));
}

/// True if a product with the factor is at least half of the other factor, and no more than it.
template <class Compute>
[[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool halves_at_most(const Compute& factor) {
  return is_between(factor, 0.5, 1.0);
}

/// m / (sqrt(v) / correction + eps), which Adam's family multiplies by a rate. It is in the middle of the
/// range, see middle_quotient, if eps is at most 2^40, the correction at least 2^-20 and at most 1, and m and
/// v are so: |m| is in [2^-80, 2^64), |v| in [2^-100, 2^44), the divisor in [2^-50, 2^43). A negative v gives
/// NaN either way.
template <class Compute>
struct moment_ratio {
  Compute first, second, correction, eps;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static bool has_moderate_eps(const Compute& number) {
    return is_between(number, 0.0, 0x1p40);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION auto correction_in_middle() const {
    return in_window<-20>(correction);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION auto moments_in_middle() const {
    return both(in_window<-80>(first), in_window<-92>(second));
  }
  /// True if they stay so in the next steps_between_asks steps, which at most halve m and v.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION auto moments_stay_in_middle() const {
    static_assert(steps_between_asks == 16);
    return both(in_window<-64>(first), in_window<-84>(second));
  }
  /// True if the ratio, with any correction, surely exceeds a share of the weight when it is multiplied by a
  /// rate: by more than rounding, since half of it does. `weighted_rate` is the least rate * correction, from
  /// 2^-40 on. For ratios in the middle.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool exceeds(double share, const Compute& weighted_rate,
                                                         const Compute& weight) const {
    return magnitude(first) * (weighted_rate * Compute(0.5 / share)) >
           magnitude(weight) * (rough_root(second) + eps);
  }
};

}  // namespace ferry::optim
