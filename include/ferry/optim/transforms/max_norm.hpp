#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>

namespace ferry::optim {

/// A row whose new weights have a Euclidean norm above `limit` is scaled down to it: by limit / (norm + 1e-7), as
/// torch.nn.Embedding's max_norm does before a lookup.
struct max_norm {
  static constexpr std::string_view name = "max_norm";

  double limit = 1.0;

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool limits_norm = true;
    Compute limit;

    KOKKOS_FORCEINLINE_FUNCTION Compute weight_factor(const Compute& squares) const {
      const Compute norm = Kokkos::sqrt(squares);
      return norm > limit ? limit / (norm + Compute(1e-7)) : Compute(1);
    }
  };

  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    kernel<Compute> made;
    made.limit = static_cast<Compute>(limit);
    return made;
  }
  template <class Check>
  void for_each_array(const Check&) const {}
  void check() const { require_not_negative(name, "limit", limit); }
};
static_assert(Transform<max_norm>);

}  // namespace ferry::optim
