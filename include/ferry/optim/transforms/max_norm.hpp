// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>

namespace ferry::optim {

/// Limits the Euclidean norm of a row's new weights: a larger norm is scaled by limit / (norm + 1e-7). The
/// formula is that of max_norm of torch.nn.Embedding, which applies it before a lookup.
struct max_norm {
  static constexpr std::string_view name = "max_norm";  ///< see ferry::Transform

  double limit = 1.0;  ///< largest norm, >= 0

  /// The part that runs in kernels, see optim::transform_defaults.
  template <class Compute>
  struct kernel : transform_defaults {
    /// Members that replace the defaults, and what they read.
    /// @{
    static constexpr bool limits_norm = true;
    Compute limit;

    KOKKOS_FORCEINLINE_FUNCTION Compute weight_factor(const Compute& squares, const Compute& unit) const {
      // Divided by the unit after the norm, which may be larger than the largest number.
      const Compute inverse = inverse_unit(unit);
      const Compute norm = Kokkos::sqrt(squares);
      return norm > limit * inverse ? limit / (norm + Compute(1e-7) * inverse) * inverse : Compute(1);
    }
    /// @}
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> part;
    part.limit = static_cast<Compute>(limit);
    return part;
  }
  template <class Visit>
  void for_each_array(const Visit&) const {}
  void check() const { require_not_negative(name, "limit", limit); }
  void check_in_float() const { require_float(name, "limit", limit, float_underflow(limit)); }
  /// @}
};
static_assert(Transform<max_norm>);

}  // namespace ferry::optim
