// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// torch.optim.RMSprop (Tieleman and Hinton 2012; centered: Graves 2013).
///
///   g += weight_decay w
///   s = alpha s + (1 - alpha) g^2
///   a += (1 - alpha) (g - a)        only if centered; s - a^2 then replaces s below
///   d = g / (sqrt(s) + eps)
///   b = momentum b + d              only with momentum; w -= lr b then replaces the last line
///   w -= lr d
struct rmsprop {
  static constexpr std::string_view name = "rmsprop";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;                 ///< see ferry::Optimizer

  double lr = 1e-2;           ///< learning rate, >= 0
  double alpha = 0.99;        ///< decay rate of s, >= 0
  double eps = 1e-8;          ///< added to the denominator, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  double momentum = 0.0;      ///< factor of the momentum buffer b, >= 0; 0 for none
  bool centered = false;      ///< true to subtract the squared mean from s
  bool maximize = false;      ///< true to ascend instead of descend

  friend bool operator==(const rmsprop&, const rmsprop&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute lr, alpha, fresh, eps, weight_decay, momentum, sign;
    bool centered;

    friend bool operator==(const update&, const update&) = default;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] = alpha * state[0] + fresh * g * g;
      Number square = state[0];
      // With two fields, the second belongs to the option that is set; with three, both are set.
      if constexpr (N > 1)
        if (centered) {
          Number& average = state[N - 1];
          average += fresh * (g - average);
          square -= average * average;
        }
      Number direction = g / (square_root(square) + eps);
      if constexpr (N > 1)
        if (N > 2 || !centered) {
          state[1] = momentum * state[1] + direction;
          direction = state[1];
        }
      weight -= lr * direction;
    }
    /// Without a gradient and weight decay only the averages decay. Momentum would continue to change the
    /// weight.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&)[N]) const {
      return weight_decay == Compute(0) && momentum == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      decay_square(state[0], alpha, steps);
      if constexpr (N > 1)
        if (centered) decay(state[N - 1], Compute(1) - fresh, steps);
    }
    /// @}
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"square_avg"}, field{"momentum_buffer", 0.0, momentum != 0.0},
                                   field{"grad_avg", 0.0, centered});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, alpha, 1.0 - alpha, eps, weight_decay, momentum,
                                        maximize ? -1.0 : 1.0, centered);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("alpha", alpha), not_negative("eps", eps),
                      not_negative("weight_decay", weight_decay), not_negative("momentum", momentum)};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(Optimizer<rmsprop>);

}  // namespace ferry::optim
