// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// torch.optim.Adadelta (Zeiler 2012).
///
///   g += weight_decay w
///   s = rho s + (1 - rho) g^2
///   d = sqrt(a + eps) / sqrt(s + eps) g
///   a = rho a + (1 - rho) d^2
///   w -= lr d
struct adadelta {
  static constexpr std::string_view name = "adadelta";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;                  ///< see ferry::Optimizer

  double lr = 1.0;            ///< learning rate, >= 0
  double rho = 0.9;           ///< decay rate of both averages, in [0, 1]
  double eps = 1e-6;          ///< added under both roots, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;      ///< true to ascend instead of descend

  friend bool operator==(const adadelta&, const adadelta&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute lr, rho, fresh, eps, weight_decay, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] = rho * state[0] + fresh * g * g;
      const Number delta = square_root(state[1] + eps) / square_root(state[0] + eps) * g;
      state[1] = rho * state[1] + fresh * delta * delta;
      weight -= lr * delta;
    }
    /// Without a gradient and weight decay only the averages decay.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&)[N]) const {
      return weight_decay == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      decay_square(state[0], rho, steps);
      decay(state[1], rho, steps);
    }
    /// @}
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"square_avg"}, field{"acc_delta"});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, rho, 1.0 - rho, eps, weight_decay, maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), option_range{"rho", rho, rho >= 0.0 && rho <= 1.0, "in [0, 1]"},
                      not_negative("eps", eps), not_negative("weight_decay", weight_decay)};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(Optimizer<adadelta>);

}  // namespace ferry::optim
