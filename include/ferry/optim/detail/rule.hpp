// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/field.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

/// The parts of the library's rules. Functions of updates besides arithmetic serve one number, or several
/// at once, see detail::lanes_of.
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
/// every backend. Accurate to a few unit roundoffs of double.
KOKKOS_INLINE_FUNCTION double power(double base, double exponent) {
  const auto whole = static_cast<std::int64_t>(exponent < 1e15 ? exponent : 1e15);
  double product = decay_over(base, whole);
  double root = base;
  for (double remainder = exponent - static_cast<double>(whole);
       remainder > 0.0 && remainder < 1.0 && root != 1.0;) {
    root = Kokkos::sqrt(root);
    remainder *= 2.0;
    if (remainder < 1.0) continue;
    product *= root;
    remainder -= 1.0;
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

/// True if the change, even 4096 times larger, is less than half a unit roundoff of the weight, so that
/// it would not change the weight. Not written as weight - 4096 change == weight, which a compiler that may
/// reorder arithmetic turns into change == 0.
template <class Compute>
KOKKOS_FUNCTION bool rounds_away(const Compute& change, const Compute& weight) {
  static_assert(sizeof(Compute) == 4 || sizeof(Compute) == 8);
  constexpr double half_unit_roundoff = sizeof(Compute) == 4 ? 0x1p-25 : 0x1p-54;
  const Compute half_unit = Compute(half_unit_roundoff) * weight;
  const Compute large = Compute(4096) * change;
  return (large < Compute(0) ? -large : large) <= (half_unit < Compute(0) ? -half_unit : half_unit);
}

/// The term rate m / (sqrt(v) + eps) of Adam's family. A step without a gradient multiplies m by beta1 and v
/// by beta2.
template <class Compute>
struct moment_term {
  Compute rate, first, second, beta1, beta2, eps;
};

/// For how many of the next `steps` steps without a gradient a rule of Adam's family only decays a weight:
/// each step multiplies it by `keep` or more, up to 1, then subtracts at most the term, which must be less
/// than half a unit roundoff of the weight:
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
  constexpr double half_unit_roundoff = is_float ? 0x1p-25 : 0x1p-54;
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
  if (!(Compute(2) * magnitude(change) <= Compute(half_unit_roundoff) * size)) return 0;

  const auto eps = static_cast<double>(term.eps);
  double least_divisor =
      static_cast<double>(divisor) < below_its_root ? static_cast<double>(divisor) : below_its_root;
  if (eps > least_divisor) least_divisor = eps < 128.0 ? eps : 128.0;
  const double largest_term = static_cast<double>(term.rate) * (512.0 / least_divisor);
  const double least_weight =
      4.0 / half_unit_roundoff * least_number * (largest_term > 1.0 ? largest_term : 1.0);
  const auto wide = static_cast<double>(size);
  if (!(wide >= least_weight)) return 0;
  const double shrink = static_cast<double>(keep) * below_rounding;
  while (steps > 0 && !(wide * decay_over(shrink, steps) >= least_weight)) steps /= 2;
  return steps;
}

/// An update with these coefficients in the order of its members: numbers are narrowed to Compute.
template <template <class> class Update, class Compute, class... Coefficients>
Update<Compute> make_update(const Coefficients&... coefficients) {
  const auto member = [](const auto& coefficient) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(coefficient)>, bool>)
      return coefficient;
    else
      return static_cast<Compute>(coefficient);
  };
  return {member(coefficients)...};
}

/// The options() of a rule whose updates depend on lr and the terms of a step, see ScheduledOptimizer: the
/// update without those coefficients, which its member set_step(lr, terms) sets.
template <class Update, class Wide>
struct scheduled_update {
  Update update;
  Wide lr;

  template <class Terms>
  KOKKOS_FUNCTION Update at(const Terms& terms) const {
    Update result = update;
    result.set_step(lr, terms);
    return result;
  }
};

/// The coefficients() of such a rule.
template <class Compute, class Rule>
auto update_at(const Rule& rule, std::int64_t step) {
  return rule.template options<Compute>().at(rule.by_step().template at<Compute>(step));
}

/// The terms of Adam's family: the bias corrections 1 - b1^step and 1 - b2^step, or the root of the second.
template <class First, class Second, bool Rooted = false>
struct correction_terms {
  First correction1;
  Second correction2;

  friend bool operator==(const correction_terms&, const correction_terms&) = default;
  static correction_terms make(double first, double second) {
    return {static_cast<First>(first), static_cast<Second>(Rooted ? std::sqrt(second) : second)};
  }
};

/// The by_step() of Adam's family. Terms<Compute>::make takes both corrections.
template <template <class> class Terms>
struct bias_corrections {
  std::array<double, 2> betas;

  friend bool operator==(const bias_corrections&, const bias_corrections&) = default;

  /// `step` counts from 1. The host computes the powers in double.
  template <class Compute>
  [[nodiscard]] Terms<Compute> at(std::int64_t step) const {
    const auto t = static_cast<double>(step);
    return Terms<Compute>::make(1.0 - std::pow(betas[0], t), 1.0 - std::pow(betas[1], t));
  }
};

}  // namespace ferry::optim
