// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/number.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/sign_of.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// FTRL-Proximal (McMahan et al. 2013, algorithm 1), per coordinate, with alpha = lr.
///
///   s = (sqrt(n + g^2) - sqrt(n)) / alpha
///   z += g - s w
///   n += g^2
///   w = 0 where |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2)
///
/// The weights of the paper start at zero. A weight with another start value takes the formula's value at its
/// first gradient, because z starts at zero.
struct ftrl {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "ftrl";
  static constexpr int min_fields = 2;
  /// @}

  double lr = 1e-1;                        ///< alpha of the paper, > 0
  double beta = 1.0;                       ///< added to sqrt(n), >= 0
  double l1 = 0.0;                         ///< L1 penalty, >= 0
  double l2 = 0.0;                         ///< L2 penalty, >= 0
  double initial_accumulator_value = 0.0;  ///< start value of n, >= 0
  bool maximize = false;                   ///< whether to ascend instead of descend

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
      Number within = either(z > Number(l1), Number(l1), z);
      within = either(within < Number(-l1), Number(-l1), within);
      const Number divisor = (beta + root) * inverse_lr + l2;
      // The divisor is zero where there was no gradient yet and beta and l2 are zero. So is the dividend:
      // divide by 1.
      weight = (within - z) / (divisor + (Number(Compute(1)) - sign_of(divisor)));
    }
    /// @}
  };

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value}, field{"linear"});
  }

  /// The update of one step; steps count from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(1.0 / lr), static_cast<Compute>(beta), static_cast<Compute>(l1),
            static_cast<Compute>(l2), static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const {
    require_option(name, "lr", lr, lr > 0.0, "> 0");
    require_not_negative(name, "beta", beta);
    require_not_negative(name, "l1", l1);
    require_not_negative(name, "l2", l2);
    require_not_negative(name, "initial_accumulator_value", initial_accumulator_value);
  }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const {
    const double inverse = 1.0 / lr;
    require_float(
        name, {"lr", lr},
        float_overflow(inverse) != nullptr ? "so small that 1 / lr is infinite" : float_overflow(lr));
    require_float(name, {"lr", lr}, float_underflow(inverse));
    require_in_float(name, {{"beta", beta}, {"l1", l1}, {"l2", l2}});
  }
};
static_assert(Optimizer<ftrl>);

}  // namespace ferry::optim
