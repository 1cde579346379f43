#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>

namespace ferry::optim {

/// A row's gradient whose Euclidean norm exceeds max_norm is scaled down to it: by max_norm / (norm + 1e-6), as
/// torch.nn.utils.clip_grad_norm_ does for all gradients together. Duplicates are combined first.
struct clip_norm {
  static constexpr std::string_view name = "clip_norm";

  double max_norm = 1.0;

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool allows_catch_up = true;
    static constexpr bool clips_norm = true;
    Compute max_norm;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient_factor(const Compute& squares) const {
      const Compute factor = max_norm / (Kokkos::sqrt(squares) + Compute(1e-6));
      return factor > Compute(1) ? Compute(1) : factor;
    }
  };

  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> made;
    made.max_norm = static_cast<Compute>(max_norm);
    return made;
  }
  template <class Check>
  void for_each_array(const Check&) const {}
  void check() const { require_not_negative(name, "max_norm", max_norm); }
};
static_assert(Transform<clip_norm>);

}  // namespace ferry::optim
