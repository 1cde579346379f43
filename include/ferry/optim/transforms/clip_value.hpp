#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/transform_defaults.hpp>

#include <Kokkos_Macros.hpp>

#include <string_view>

namespace ferry::optim {

/// Every element of a gradient into [-limit, limit], as torch.nn.utils.clip_grad_value_; a NaN stays one.
struct clip_value {
  static constexpr std::string_view name = "clip_value";

  double limit = 1.0;

  template <class Compute>
  struct kernel : transform_defaults {
    static constexpr bool allows_catch_up = true;
    Compute limit;

    KOKKOS_FORCEINLINE_FUNCTION Compute gradient(const Compute& g) const {
      return g > limit ? limit : g < -limit ? -limit : g;
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
static_assert(Transform<clip_value>);

}  // namespace ferry::optim
