// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>

namespace ferry::optim {

/// Limits the Euclidean norm of a row's gradient: a larger norm is scaled by max_norm / (norm + 1e-6). The
/// formula is that of torch.nn.utils.clip_grad_norm_, applied per row. Duplicates are combined first.
struct clip_norm {
  /// Facts about the transform, see ferry::Transform.
  /// @{
  static constexpr std::string_view name = "clip_norm";
  /// @}

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

  /// The kernels' part, in the type that they compute in.
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> made;
    made.max_norm = static_cast<Compute>(max_norm);
    return made;
  }
  /// No array is read.
  template <class Check>
  void for_each_array(const Check&) const {}
  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const { require_not_negative(name, "max_norm", max_norm); }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const { require_limit_in_float(name, {"max_norm", max_norm}); }
};
static_assert(Transform<clip_norm>);

}  // namespace ferry::optim
