// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Macros.hpp>

#include <string_view>

namespace ferry::optim {

/// Clamps every element of a gradient to [-limit, limit], as torch.nn.utils.clip_grad_value_. A NaN stays a
/// NaN.
struct clip_value {
  static constexpr std::string_view name = "clip_value";  ///< see ferry::Transform

  double limit = 1.0;  ///< largest magnitude, >= 0

  /// The part that runs in kernels, see optim::transform_defaults.
  template <class Compute>
  struct kernel : transform_defaults {
    /// Members that replace the defaults, and what they read.
    /// @{
    static constexpr bool allows_catch_up = true;
    Compute limit;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g) const {
      return g > limit ? limit : g < -limit ? -limit : g;
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
static_assert(Transform<clip_value>);

}  // namespace ferry::optim
