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

/// a / b and square_root(x), with the same bits, of floats far from the ends of the range: |a| >= 2^-100, |b|
/// in [2^-60, 2^60], |a / b| in [2^-125, 2^125], x in [2^-100, 2^100]. A device then needs no branches for
/// others, and interleaves several.
/// @{
template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number middle_quotient(const Number& a, const Number& b) {
  if constexpr (requires { a.middle_quotient(b); })
    return a.middle_quotient(b);
  else
    return a / b;
}
/// By a divisor that several numbers share: `inverse` is 1 / b, rounded to nearest.
template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number middle_quotient(const Number& a, const Number& b,
                                                   [[maybe_unused]] const Number& inverse) {
  if constexpr (requires { a.middle_quotient(b, inverse); })
    return a.middle_quotient(b, inverse);
  else
    return middle_quotient(a, b);
}
template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number middle_root(const Number& x) {
  if constexpr (requires { x.middle_root(); })
    return x.middle_root();
  else
    return square_root(x);
}
/// @}
template <class Number>
KOKKOS_FORCEINLINE_FUNCTION Number magnitude(const Number& x) {
  if constexpr (requires { x.magnitude(); })
    return x.magnitude();
  else
    return Kokkos::fabs(x);
}

/// a && b, evaluated without branches: a device's compiler chains comparisons that are joined so.
[[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION constexpr bool both(bool a, bool b) { return (a & b) != 0; }

template <class Number>
[[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool is_between(const Number& x, double least, double most) {
  return both(x >= Number(least), x <= Number(most));
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
