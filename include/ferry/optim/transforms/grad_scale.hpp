// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <Kokkos_Macros.hpp>

#include <string_view>

namespace ferry::optim {

/// Divides the gradients by the factor of a scaled loss. torch.amp.GradScaler scales losses in this way to
/// keep 16-bit gradients from underflowing. With nonfinite::skip, a step whose gradients overflowed is left
/// out.
struct grad_scale {
  static constexpr std::string_view name = "grad_scale";  ///< see ferry::Transform

  double scale = 1.0;  ///< factor of the loss, > 0 and finite

  /// The part that runs in kernels, see optim::transform_defaults.
  template <class Compute>
  struct kernel : transform_defaults {
    /// Members that replace the defaults, and what they read.
    /// @{
    static constexpr bool allows_catch_up = true;
    Compute inverse;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g) const { return g * inverse; }
    /// @}
  };

  /// Members of ferry::Transform.
  /// @{
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> part;
    part.inverse = static_cast<Compute>(1.0 / scale);
    return part;
  }
  template <class Visit>
  void for_each_array(const Visit&) const {}
  void check() const {
    require_option(name, "scale", scale, scale > 0.0 && ferry::detail::is_finite(scale), "> 0 and finite");
  }
  void check_in_float() const {
    const double inverse = 1.0 / scale;
    require_float(name, "scale", scale,
                  float_overflow(inverse) != nullptr ? "so small that 1 / scale is infinite" : nullptr);
    require_float(name, "scale", scale,
                  float_underflow(inverse) != nullptr ? "so large that 1 / scale is 0" : nullptr);
  }
  /// @}
};
static_assert(Transform<grad_scale>);

}  // namespace ferry::optim
