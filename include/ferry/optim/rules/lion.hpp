// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/sign_of.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// Lion (Chen et al. 2023, algorithm 2), with decoupled weight decay.
///
///   w *= 1 - lr weight_decay
///   w -= lr sign(b1 m + (1 - b1) g)
///   m = b2 m + (1 - b2) g
struct lion {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "lion";
  static constexpr int min_fields = 1;
  /// @}

  double lr = 1e-4;                           ///< learning rate, >= 0
  std::array<double, 2> betas = {0.9, 0.99};  ///< weight of m in the direction, decay rate of m; in [0, 1)
  double weight_decay = 0.0;                  ///< decoupled, >= 0: w *= 1 - lr weight_decay
  bool maximize = false;                      ///< whether to ascend instead of descend

  friend bool operator==(const lion&, const lion&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute lr, keep, beta1, fresh1, beta2, fresh2, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = sign * gradient;
      const Number direction = beta1 * state[0] + fresh1 * g;
      weight = keep * weight - lr * sign_of(direction);
      state[0] = beta2 * state[0] + fresh2 * g;
    }
    /// @}
  };

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}); }

  /// The update of one step; steps count from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr),
            static_cast<Compute>(1.0 - lr * weight_decay),
            static_cast<Compute>(betas[0]),
            static_cast<Compute>(1.0 - betas[0]),
            static_cast<Compute>(betas[1]),
            static_cast<Compute>(1.0 - betas[1]),
            static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const {
    require_not_negative(name, "lr", lr);
    require_rate(name, "betas[0]", betas[0]);
    require_rate(name, "betas[1]", betas[1]);
    require_not_negative(name, "weight_decay", weight_decay);
  }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const {
    require_rate_in_float(name, lr);
    require_in_float(name, {{"betas[0]", betas[0]}, {"betas[1]", betas[1]}});
  }
};
static_assert(Optimizer<lion>);

}  // namespace ferry::optim
