// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// torch.optim.Adagrad (Duchi et al. 2011).
///
///   g += weight_decay w
///   s += g^2
///   w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps)
struct adagrad {
  static constexpr std::string_view name = "adagrad";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;                 ///< see ferry::Optimizer

  double lr = 1e-2;                        ///< learning rate, >= 0
  double lr_decay = 0.0;                   ///< decay of lr with the step number, >= 0
  double weight_decay = 0.0;               ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  double initial_accumulator_value = 0.0;  ///< start value of s, >= 0
  double eps = 1e-10;                      ///< added to the denominator, >= 0
  bool maximize = false;                   ///< true to ascend instead of descend

  friend bool operator==(const adagrad&, const adagrad&) = default;

  /// The divisor of lr at one step, see ferry::ScheduledOptimizer.
  template <class Compute>
  struct terms {
    /// 1 + (step - 1) lr_decay
    /// @{
    double divisor;

    friend bool operator==(const terms&, const terms&) = default;
    /// @}
  };
  /// The decay of lr, see ferry::ScheduledOptimizer.
  struct rate_decay {
    /// The option that terms depend on, and the terms of a step.
    /// @{
    double lr_decay;

    friend bool operator==(const rate_decay&, const rate_decay&) = default;
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      return {1.0 + static_cast<double>(step - 1) * lr_decay};
    }
    /// @}
  };

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute lr, weight_decay, eps, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] += g * g;
      weight -= lr * (g / (square_root(state[0]) + eps));
    }
    /// Without a gradient nothing changes.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&)[N]) const {
      return weight_decay == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&)[N], std::int64_t) const {}
    template <class Wide>
    KOKKOS_FUNCTION void set_step(const Wide& rate, const terms<Compute>& step) {
      lr = narrowed<Compute>(rate / step.divisor);
    }
    /// @}
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value});
  }
  [[nodiscard]] rate_decay by_step() const { return {lr_decay}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    return {make_update<update, Compute>(0.0, weight_decay, eps, maximize ? -1.0 : 1.0), Wide(lr)};
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("lr_decay", lr_decay, float_range::any),
                      not_negative("weight_decay", weight_decay),
                      not_negative("initial_accumulator_value", initial_accumulator_value, float_range::any),
                      not_negative("eps", eps)};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(ScheduledOptimizer<adagrad>);

}  // namespace ferry::optim
