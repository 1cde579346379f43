// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

/// Functions of updates besides arithmetic, for one number and for several at once, see detail::lanes_of.
namespace ferry::optim {

template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number square_root(const Number& x) {
  if constexpr (requires { x.square_root(); })
    return x.square_root();
  else
    return Kokkos::sqrt(x);
}

template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number magnitude(const Number& x) {
  if constexpr (requires { x.magnitude(); })
    return x.magnitude();
  else
    return Kokkos::fabs(x);
}

/// condition ? a : b. For several numbers the backend has its own, which is found by the condition's type.
template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number either(bool condition, const Number& a, const Number& b) {
  return condition ? a : b;
}

/// 1, 0 or -1; 0 for a NaN. Written as the difference of two comparisons, which a host's compiler vectorises.
/// Nested conditionals become branches, which the signs of gradients mispredict.
template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number sign_of(const Number& x) {
  if constexpr (requires { x.sign(); })
    return x.sign();
  else
    return Number(static_cast<float>(static_cast<int>(x > Number(0)) - static_cast<int>(x < Number(0))));
}

}  // namespace ferry::optim
