// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Macros.hpp>

#include <string_view>

namespace ferry::optim {

/// Clamps every element of a gradient to [-limit, limit], as torch.nn.utils.clip_grad_value_. A NaN stays a
/// NaN.
struct clip_value {
  /// Facts about the transform, see ferry::Transform.
  /// @{
  static constexpr std::string_view name = "clip_value";
  /// @}

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

  /// The kernels' part, in the type that they compute in.
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> made;
    made.limit = static_cast<Compute>(limit);
    return made;
  }
  /// No array is read.
  template <class Check>
  void for_each_array(const Check&) const {}
  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const { require_not_negative(name, "limit", limit); }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const { require_limit_in_float(name, {"limit", limit}); }
};
static_assert(Transform<clip_value>);

}  // namespace ferry::optim
