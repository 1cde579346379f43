// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// torch.optim.Adamax (Kingma and Ba 2015, section 7.1).
///
///   g += weight_decay w
///   m += (1 - b1) (g - m)
///   u = max(b2 u, |g| + eps)
///   w -= lr / (1 - b1^step) m / u
struct adamax {
  static constexpr std::string_view name = "adamax";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;                ///< see ferry::Optimizer

  double lr = 2e-3;                  ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.999};  ///< decay rates of m and u, each in [0, 1)
  double eps = 1e-8;                 ///< added to |g|, >= 0
  double weight_decay = 0.0;         ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;             ///< true to ascend instead of descend

  friend bool operator==(const adamax&, const adamax&) = default;

  /// The bias correction of one step, see ferry::ScheduledOptimizer.
  template <class Compute>
  struct terms {
    /// 1 - b1^step
    /// @{
    double correction1;

    friend bool operator==(const terms&, const terms&) = default;
    static terms make(double first, double) { return {first}; }
    /// @}
  };

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute step_size, fresh1, beta2, eps, weight_decay, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] += fresh1 * (g - state[0]);
      const Number decayed = beta2 * state[1];
      const Number now = magnitude(g) + eps;
      state[1] = either(now > decayed || now != now, now, decayed);  // a NaN is kept, as in torch
      weight -= step_size * (state[0] / state[1]);
    }
    template <class Wide>
    KOKKOS_FUNCTION void set_step(const Wide& lr, const terms<Compute>& step) {
      step_size = narrowed<Compute>(lr / step.correction1);
    }
    /// @}
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_inf"}); }
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    return {
        make_update<update, Compute>(0.0, 1.0 - betas[0], betas[1], eps, weight_decay, maximize ? -1.0 : 1.0),
        Wide(lr)};
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }
  void check() const { require_options(name, adam_options(*this)); }
  void check_in_float() const { require_options_in_float(name, adam_options(*this)); }
  /// @}
};
static_assert(ScheduledOptimizer<adamax>);

}  // namespace ferry::optim
