// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/decay.hpp>
#include <ferry/optim/detail/number.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::optim {

/// The term rate m / (sqrt(v) + eps) of Adam's family. A step without a gradient multiplies m by beta1 and v
/// by beta2.
template <class Compute>
struct moment_term {
  Compute rate, first, second, beta1, beta2, eps;
};

/// For how many of the next `steps` steps without a gradient a rule of Adam's family only decays a weight:
/// each step multiplies it by `keep` or more, up to 1, then subtracts at most the term, which must be less
/// than half a unit in the last place:
///
/// - The term shrinks faster than the weight, so it stays too small if it is. The root of v shrinks by no
///   more than sqrt(2 beta2 - 1) a step, even among subnormal numbers: a beta2 above 1/2 rounds an integer
///   k to no less than (2 beta2 - 1) k.
/// - Subnormal numbers don't decay to 0: m may stay at 100 times the least number, as beta1 is below 0.995,
///   and v at the least number. So the weight must remain large against these.
///
/// In double there are only products, which every backend rounds alike: all find the same number of steps.
template <class Compute>
KOKKOS_FUNCTION std::int64_t decay_phase(const moment_term<Compute>& term, const Compute& weight,
                                         const Compute& keep, std::int64_t steps) {
  constexpr bool is_float = sizeof(Compute) == 4;
  constexpr double half_of_last_place = is_float ? 0x1p-25 : 0x1p-54;
  constexpr double least_number = is_float ? 0x1p-149 : 0x1p-1074;
  constexpr double below_its_root = is_float ? 0x1p-75 : 0x1p-538;
  constexpr double below_rounding = is_float ? 1.0 - 0x1p-23 : 1.0 - 0x1p-52;

  const Compute divisor = square_root(term.second) + term.eps;
  if (!(term.beta2 > Compute(0.5)) || !(divisor > Compute(0))) return 0;
  if (term.first == Compute(0)) return steps;
  if (!(keep > Compute(0) && keep <= Compute(1))) return 0;
  const Compute fall = (term.beta2 + term.beta2 - Compute(1)) * keep * keep;
  if (!(term.beta1 * term.beta1 < Compute(0.99) * fall)) return 0;
  const Compute change = term.rate * (term.first / divisor);
  const Compute size = magnitude(weight);
  if (!(Compute(2) * magnitude(change) <= Compute(half_of_last_place) * size)) return 0;

  const auto eps = static_cast<double>(term.eps);
  double least_divisor =
      static_cast<double>(divisor) < below_its_root ? static_cast<double>(divisor) : below_its_root;
  if (eps > least_divisor) least_divisor = eps < 128.0 ? eps : 128.0;
  const double largest_term = static_cast<double>(term.rate) * (512.0 / least_divisor);
  const double least_weight =
      4.0 / half_of_last_place * least_number * (largest_term > 1.0 ? largest_term : 1.0);
  const auto wide = static_cast<double>(size);
  if (!(wide >= least_weight)) return 0;
  const double shrink = static_cast<double>(keep) * below_rounding;
  while (steps > 0 && !(wide * decay_over(shrink, steps) >= least_weight)) steps /= 2;
  return steps;
}

}  // namespace ferry::optim
