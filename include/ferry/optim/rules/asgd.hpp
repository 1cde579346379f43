// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

#include <algorithm>

namespace ferry::optim {

/// torch.optim.ASGD (Polyak and Juditsky 1992).
///
///   g += weight_decay w
///   w = (1 - lambd eta) w - eta g
///   ax += mu (w - ax)               the average, which is the result of the training
///   eta(1) = lr
///   eta(t) = lr / (1 + lambd lr (t - 1))^alpha
///   mu(t) = 1 / max(1, t - 1 - t0)
///
/// torch computes eta one step ahead, so a new lr takes effect one step later there. Here it takes effect at
/// once.
struct asgd {
  static constexpr std::string_view name = "asgd";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;              ///< see ferry::Optimizer

  double lr = 1e-2;           ///< learning rate, >= 0
  double lambd = 1e-4;        ///< decay of the weights, >= 0
  double alpha = 0.75;        ///< power of the decay of eta, >= 0
  double t0 = 1e6;            ///< steps before averaging starts, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;      ///< true to ascend instead of descend

  friend bool operator==(const asgd&, const asgd&) = default;

  /// The number of earlier steps and mu, see ferry::ScheduledOptimizer.
  template <class Compute>
  struct terms {
    /// step - 1, mu(step)
    /// @{
    double earlier_steps;
    Compute mu;

    friend bool operator==(const terms&, const terms&) = default;
    /// @}
  };
  /// The start of the averaging, see ferry::ScheduledOptimizer.
  struct averaging {
    /// The option that terms depend on, and the terms of a step.
    /// @{
    double t0;

    friend bool operator==(const averaging&, const averaging&) = default;
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      const auto earlier_steps = static_cast<double>(step - 1);
      return {earlier_steps, static_cast<Compute>(1.0 / std::max(1.0, earlier_steps - t0))};
    }
    /// @}
  };

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute eta, keep, mu, weight_decay, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      weight = keep * weight - eta * g;
      state[0] = mu == Compute(1) ? weight : state[0] + mu * (weight - state[0]);
    }
    /// @}
  };

  /// The options that a schedule may change, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide>
  struct eta_options {
    /// Options, and the update that follows from them.
    /// @{
    Wide lr, lambd;
    double alpha;
    Compute weight_decay, sign;

    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& step) const {
      const Wide base = Wide(1.0) + lambd * lr * step.earlier_steps;
      const Wide eta = lr / power(static_cast<double>(base), alpha);
      return {narrowed<Compute>(eta), narrowed<Compute>(Wide(1.0) - lambd * eta), step.mu, weight_decay,
              sign};
    }
    /// @}
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"ax"}); }
  [[nodiscard]] averaging by_step() const { return {t0}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] eta_options<Compute, Wide> options() const {
    return {Wide(lr), Wide(lambd), alpha, static_cast<Compute>(weight_decay),
            static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("lambd", lambd, float_range::any),
                      not_negative("alpha", alpha, float_range::any),
                      not_negative("t0", t0, float_range::any), not_negative("weight_decay", weight_decay)};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(ScheduledOptimizer<asgd>);

}  // namespace ferry::optim
