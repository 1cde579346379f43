// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// FTRL-Proximal (McMahan et al. 2013, algorithm 1), per coordinate, with alpha = lr.
///
///   s = (sqrt(n + g^2) - sqrt(n)) / alpha
///   z += g - s w
///   n += g^2
///   w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2)
///
/// The weights of the paper start at zero. A weight with another start value takes the formula's value at its
/// first gradient, because z starts at zero.
struct ftrl {
  static constexpr std::string_view name = "ftrl";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;              ///< see ferry::Optimizer

  double lr = 1e-1;                        ///< alpha of the paper, > 0
  double beta = 1.0;                       ///< added to sqrt(n), >= 0
  double l1 = 0.0;                         ///< L1 penalty, >= 0
  double l2 = 0.0;                         ///< L2 penalty, >= 0
  double initial_accumulator_value = 0.0;  ///< start value of n, >= 0
  bool maximize = false;                   ///< true to ascend instead of descend

  friend bool operator==(const ftrl&, const ftrl&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute inverse_lr, beta, l1, l2, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = sign * gradient;
      const Number before = square_root(state[0]);
      state[0] += g * g;
      const Number root = square_root(state[0]);
      state[1] += g - (root - before) * inverse_lr * weight;
      const Number z = state[1];
      Number clamp = either(z > Number(l1), Number(l1), z);
      clamp = either(clamp < Number(-l1), Number(-l1), clamp);
      const Number divisor = (beta + root) * inverse_lr + l2;
      // The divisor is zero if there was no gradient yet and beta and l2 are zero. So is the dividend:
      // divide by 1.
      weight = (clamp - z) / (divisor + (Number(Compute(1)) - sign_of(divisor)));
    }
    /// @}
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value}, field{"linear"});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(1.0 / lr, beta, l1, l2, maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{option_range{"lr", lr, lr > 0.0, "> 0", float_range::may_vanish},
                      not_negative("beta", beta), not_negative("l1", l1), not_negative("l2", l2),
                      not_negative("initial_accumulator_value", initial_accumulator_value, float_range::any)};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const {
    require_options_in_float(name, ranges());
    const double inverse = 1.0 / lr;
    if (float_overflow(inverse) != nullptr) require_float(name, "lr", lr, "so small that 1 / lr is infinite");
    require_float(name, "lr", lr, float_underflow(inverse));
  }
  /// @}
};
static_assert(Optimizer<ftrl>);

}  // namespace ferry::optim
