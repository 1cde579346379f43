// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/number.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::optim {

/// Missed steps between two questions whether elements of a row are idle. The answer for an element depends
/// on that element alone, so results are the same for any tile.
inline constexpr std::int64_t steps_between_asks = 16;

/// The term rate m / (sqrt(v) / correction + eps) of Adam's family in up to 16 steps without a gradient, which
/// at most halve m and v each time.
template <class Compute>
struct coasting_term {
  Compute rate, first, second;
  Compute correction;       ///< of a step that asks, see kernels::catch_up_tile
  Compute next_correction;  ///< of the first step; later ones are larger, up to 1
  Compute beta1, beta2, eps;

  /// True if no number of these steps is near the ends of float's range, see middle_quotient: there m is in
  /// [2^-80, 2^40], sqrt(v) in [2^-50, 2^20] and the divisor in [2^-50, 2^41].
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool is_in_middle() const {
    return is_between(beta1, 0.5, 1.0) && is_between(beta2, 0.5, 1.0) && is_between(eps, 0.0, 0x1p40) &&
           is_between(correction, 0x1p-20, 1.0) && is_between(next_correction, 0x1p-20, 1.0) &&
           is_between(rate, 0x1p-40, 0x1p40) && is_between(magnitude(first), 0x1p-64, 0x1p40) &&
           is_between(second, 0x1p-84, 0x1p40);
  }
  /// True if the term surely exceeds the weight's share: by more than all rounding, as twice the term does.
  /// Without a division. For a term in the middle.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool exceeds(double share, const Compute& weight) const {
    return magnitude(first) * (rate * correction * Compute(0.5 / share)) >
           magnitude(weight) * (middle_root(second) + eps * correction);
  }

 private:
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static bool is_between(const Compute& x, double least,
                                                                   double most) {
    return x >= Compute(least) && x <= Compute(most);
  }
};

}  // namespace ferry::optim
