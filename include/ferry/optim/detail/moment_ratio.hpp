// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// m / (sqrt(v) / correction + eps), which Adam's family multiplies by a rate.
template <class Compute>
struct moment_ratio {
  Compute first, second, correction, eps;

  /// True if its operands are far from the ends of float's range, see middle_quotient, and stay so in `steps`
  /// steps, up to 16, that at most halve m and v and increase the correction up to 1. Then m is in
  /// [2^-80, 2^40], sqrt(v) in [2^-50, 2^20] and the divisor in [2^-50, 2^41].
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool is_in_middle(std::int64_t steps) const {
    return both(options_in_middle(), moments_in_middle(steps));
  }
  /// The parts of is_in_middle: of all elements, and of one.
  /// @{
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool options_in_middle() const {
    return both(is_between(correction, 0x1p-20, 1.0), is_between(eps, 0.0, 0x1p40));
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool moments_in_middle(std::int64_t steps) const {
    const bool has_steps = steps != 0;
    return both(is_between(magnitude(first), has_steps ? 0x1p-64 : 0x1p-80, 0x1p40),
                is_between(second, has_steps ? 0x1p-84 : 0x1p-100, 0x1p40));
  }
  /// @}
  /// True if the ratio, with any correction, surely exceeds a share of the weight when it is multiplied by a
  /// rate: by more than rounding, since half of it does. `weighted_rate` is the least rate * correction, from
  /// 2^-40 to 2^40. For ratios in the middle.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool exceeds(double share, const Compute& weighted_rate,
                                                         const Compute& weight) const {
    return magnitude(first) * (weighted_rate * Compute(0.5 / share)) >
           magnitude(weight) * (rough_root(second) + eps);
  }
};

}  // namespace ferry::optim
