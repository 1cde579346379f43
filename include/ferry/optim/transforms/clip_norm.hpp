// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>

namespace ferry::optim {

/// Limits the Euclidean norm of a row's gradient: a larger norm is scaled by max_norm / (norm + 1e-6). The
/// formula is that of torch.nn.utils.clip_grad_norm_, applied per row. Duplicates are combined first.
struct clip_norm {
  static constexpr std::string_view name = "clip_norm";  ///< see ferry::Transform

  double max_norm = 1.0;  ///< largest norm, >= 0

  /// The part that runs in kernels, see optim::transform_defaults.
  template <class Compute>
  struct kernel : transform_defaults {
    /// Members that replace the defaults, and what they read.
    /// @{
    static constexpr bool allows_catch_up = true;
    static constexpr bool clips_norm = true;
    Compute max_norm;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient_factor(const Compute& squares, const Compute& unit) const {
      // Divided by the unit after the norm, which may be larger than the largest number.
      const Compute inverse = inverse_unit(unit);
      const Compute factor = max_norm / (Kokkos::sqrt(squares) + Compute(1e-6) * inverse) * inverse;
      return factor > Compute(1) ? Compute(1) : factor;
    }
    /// @}
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> part;
    part.max_norm = static_cast<Compute>(max_norm);
    return part;
  }
  template <class Visit>
  void for_each_array(const Visit&) const {}
  void check() const { require_not_negative(name, "max_norm", max_norm); }
  void check_in_float() const { require_float(name, "max_norm", max_norm, float_underflow(max_norm)); }
  /// @}
};
static_assert(Transform<clip_norm>);

}  // namespace ferry::optim
