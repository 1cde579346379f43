// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// Lion (Chen et al. 2023, algorithm 2), with decoupled weight decay.
///
///   w *= 1 - lr weight_decay
///   w -= lr sign(b1 m + (1 - b1) g)
///   m = b2 m + (1 - b2) g
struct lion {
  static constexpr std::string_view name = "lion";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;              ///< see ferry::Optimizer

  double lr = 1e-4;                 ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.99};  ///< weight of m in the direction, decay rate of m; in [0, 1)
  double weight_decay = 0.0;        ///< decoupled, >= 0: w *= 1 - lr weight_decay
  bool maximize = false;            ///< true to ascend instead of descend

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
    /// Without a gradient a weight moves by lr until m is zero, which decay does not make it.
    /// @{
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&state)[N]) const {
      return keep == Compute(1) && state[0] == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&)[N], std::int64_t) const {}
    template <int N>
    KOKKOS_FUNCTION std::int64_t decay_phase(Compute, const Compute (&state)[N], std::int64_t steps) const {
      return state[0] == Compute(0) ? steps : 0;
    }
    template <class Number>
    KOKKOS_FORCEINLINE_FUNCTION void decay_weight(Number& weight) const {
      weight *= keep;
    }
    /// @}
    /// @}
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, 1.0 - lr * weight_decay, betas[0], 1.0 - betas[0], betas[1],
                                        1.0 - betas[1], maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), decay_rate("betas[0]", betas[0]), decay_rate("betas[1]", betas[1]),
                      not_negative("weight_decay", weight_decay, float_range::any)};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(Optimizer<lion>);

}  // namespace ferry::optim
