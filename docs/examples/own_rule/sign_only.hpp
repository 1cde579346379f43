// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>

namespace own {

/// A transform that replaces each gradient by its sign before the rule sees it.
struct sign_only {
  static constexpr std::string_view name = "sign_only";

  template <class Compute>
  struct kernel : ferry::optim::transform_defaults {
    static constexpr bool allows_catch_up = true;  // a gradient of zero stays zero
    KOKKOS_FUNCTION Compute gradient(const Compute& g) const {
      return g > Compute(0) ? Compute(1) : g < Compute(0) ? Compute(-1) : Compute(0);
    }
  };
  /// The options, as the kernels take them.
  template <class Compute>
  [[nodiscard]] kernel<Compute> device_part() const {
    return {};
  }
  /// check(array) for each array that they read.
  template <class Check>
  void for_each_array(const Check&) const {}
  /// Throws where an option makes no sense.
  void check() const {}
};
static_assert(ferry::Transform<sign_only>);

}  // namespace own
