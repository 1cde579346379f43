#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <Kokkos_Macros.hpp>

#include <string_view>

namespace ferry::optim {

/// Gradients of a loss that was multiplied by `scale`, as torch.amp.GradScaler does it to keep 16-bit gradients from
/// vanishing: they are divided by it. With nonfinite::skip a step whose gradients overflowed is left out.
struct grad_scale {
  static constexpr std::string_view name = "grad_scale";

  double scale = 1.0;

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool allows_catch_up = true;
    Compute inverse;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g) const { return g * inverse; }
  };

  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> made;
    made.inverse = static_cast<Compute>(1.0 / scale);
    return made;
  }
  template <class Check>
  void for_each_array(const Check&) const {}
  void check() const {
    require_option(name, "scale", scale, scale > 0.0 && ferry::detail::is_finite(scale), "> 0 and finite");
  }
};
static_assert(Transform<grad_scale>);

}  // namespace ferry::optim
