// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::optim {

/// base^steps by repeated squaring in double: only multiplications, so the result is the same on every
/// backend.
template <class Compute>
KOKKOS_FUNCTION Compute decay_over(const Compute& base, std::int64_t steps) {
  double square = static_cast<double>(base);
  double product = 1.0;
  for (; steps > 0; steps /= 2) {
    if (steps % 2 != 0) product *= square;
    square *= square;
  }
  return static_cast<Compute>(product);
}

/// number *= base^steps. An infinite number stays so, as step by step, when the power rounds to 0.
template <class Compute>
KOKKOS_FUNCTION void decay(Compute& number, const Compute& base, std::int64_t steps) {
  const Compute decayed = number * decay_over(base, steps);
  if (decayed == decayed) number = decayed;
}

/// decay() of an average of squares, by which a rule divides. It stays above 0, as step by step: a base above
/// 1/2 rounds the least number to itself. Without eps, 0 would make the term of a zero gradient 0 / 0.
template <class Compute>
KOKKOS_FUNCTION void decay_square(Compute& square, const Compute& base, std::int64_t steps) {
  constexpr double least_number = sizeof(Compute) == 4 ? 0x1p-149 : 0x1p-1074;
  if (square == Compute(0)) return;
  decay(square, base, steps);
  if (square == Compute(0) && base > Compute(0.5)) square = Compute(least_number);
}

/// base^exponent for an exponent >= 0, by squares and square roots: no sums, so the result is the same on
/// every backend. Accurate to a few units in the last place of a double.
KOKKOS_INLINE_FUNCTION double power(double base, double exponent) {
  const auto whole = static_cast<std::int64_t>(exponent < 1e15 ? exponent : 1e15);
  double product = decay_over(base, whole);
  double root = base;
  for (double rest = exponent - static_cast<double>(whole); rest > 0.0 && rest < 1.0 && root != 1.0;) {
    root = Kokkos::sqrt(root);
    rest *= 2.0;
    if (rest < 1.0) continue;
    product *= root;
    rest -= 1.0;
  }
  return product;
}

/// A number computed from options in double, narrowed to the type of an update.
template <class Compute, class Wide>
KOKKOS_FORCEINLINE_FUNCTION Compute narrowed(const Wide& number) {
  return static_cast<Compute>(static_cast<double>(number));
}

/// gradient + weight_decay weight. The term is left out without a decay, as in torch.optim: 0 times an
/// infinite weight is not 0.
template <class Number, class Compute>
KOKKOS_FORCEINLINE_FUNCTION Number decayed(const Number& gradient, const Compute& weight_decay,
                                           const Number& weight) {
  const Number sum = gradient + weight_decay * weight;
  return weight_decay == Compute(0) ? gradient : sum;
}

/// True if the change, even 4096 times larger, is less than half a unit in the weight's last place, so that
/// it would not change the weight. Not written as weight - 4096 change == weight, which a compiler that may
/// reorder arithmetic turns into change == 0.
template <class Compute>
KOKKOS_FUNCTION bool rounds_away(const Compute& change, const Compute& weight) {
  static_assert(sizeof(Compute) == 4 || sizeof(Compute) == 8);
  constexpr double half_of_last_place = sizeof(Compute) == 4 ? 0x1p-25 : 0x1p-54;
  const Compute most = Compute(half_of_last_place) * weight;
  const Compute large = Compute(4096) * change;
  return (large < Compute(0) ? -large : large) <= (most < Compute(0) ? -most : most);
}

}  // namespace ferry::optim
