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
    double correction1;  // 1 - b1^step

    friend bool operator==(const terms&, const terms&) = default;
    static terms make(double first, double) { return {first}; }
  };

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute step_size, fresh1, beta2, eps, weight_decay, sign;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      const auto g = decayed(sign * gradient, weight_decay, weight);
      state[0] += fresh1 * (g - state[0]);
      const auto decayed = beta2 * state[1];
      const auto now = magnitude(g) + eps;
      state[1] = either(now > decayed || now != now, now, decayed);  // a NaN is kept, as in torch
      weight -= step_size * (state[0] / state[1]);
    }
    KOKKOS_FUNCTION void set_step(const auto& lr, const terms<Compute>& step) {
      step_size = narrowed<Compute>(lr / step.correction1);
    }
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
  [[nodiscard]] auto coefficients(std::int64_t step) const {
    return update_at<Compute>(*this, step);
  }
  [[nodiscard]] auto ranges() const { return adam_options(*this); }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// torch.optim.NAdam (Dozat 2016): Adam with Nesterov's momentum. P is the product of mu(1) ... mu(step).
///
///   mu(t) = b1 (1 - 0.96^(t momentum_decay) / 2)
///   g += weight_decay w             or, with decoupled_weight_decay, w *= 1 - lr weight_decay
///   m += (1 - b1) (g - m)
///   v = b2 v + (1 - b2) g^2
///   r = sqrt(v / (1 - b2^step)) + eps
///   w -= lr ((1 - mu(step)) / (1 - P) g + mu(step + 1) / (1 - P mu(step + 1)) m) / r
struct nadam {
  static constexpr std::string_view name = "nadam";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;               ///< see ferry::Optimizer

  double lr = 2e-3;                     ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.999};     ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                    ///< added to the denominator, >= 0
  double weight_decay = 0.0;            ///< >= 0: L2 penalty, or decoupled
  double momentum_decay = 4e-3;         ///< decay of the momentum with the step number, >= 0
  bool decoupled_weight_decay = false;  ///< true if w *= 1 - lr weight_decay replaces the L2 penalty
  bool maximize = false;                ///< true to ascend instead of descend

  friend bool operator==(const nadam&, const nadam&) = default;

  /// The momenta of one step, see ferry::ScheduledOptimizer.
  template <class Compute>
  struct terms {
    // 1 - mu(step), 1 - P, mu(step + 1), 1 - P mu(step + 1), 1 - b2^step
    double gradient_share, gradient_room, average_share, average_room;
    Compute correction2;

    friend bool operator==(const terms&, const terms&) = default;
  };
  /// The momenta of all steps, see ferry::ScheduledOptimizer.
  struct momenta {
    std::array<double, 2> betas;
    double momentum_decay;

    friend bool operator==(const momenta&, const momenta&) = default;

    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      const double next = momentum(step + 1);
      const double product = momentum_product(step);
      return {1.0 - momentum(step), 1.0 - product, next, 1.0 - product * next,
              static_cast<Compute>(1.0 - std::pow(betas[1], static_cast<double>(step)))};
    }

   private:
    [[nodiscard]] double momentum(std::int64_t t) const {
      return betas[0] * (1.0 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay));
    }
    /// The product of the momenta of steps 1 to `step`, until it no longer changes 1 - P.
    [[nodiscard]] double momentum_product(std::int64_t step) const {
      double product = 1.0;
      for (std::int64_t t = 1; t <= step && product > 1e-20; ++t) product *= momentum(t);
      return product;
    }
  };

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute gradient_rate, average_rate, fresh1, beta2, fresh2, correction2, eps, weight_decay, keep, sign;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      weight *= keep;
      const auto g = decayed(sign * gradient, weight_decay, weight);
      state[0] += fresh1 * (g - state[0]);
      state[1] = beta2 * state[1] + fresh2 * g * g;
      const auto root = square_root(state[1] / correction2) + eps;
      weight -= gradient_rate * (g / root);
      weight -= average_rate * (state[0] / root);
    }
    /// As for adam. The momenta change too slowly to matter.
    KOKKOS_FUNCTION bool at_rest(Compute weight, const auto& state) const {
      const Compute beta1 = Compute(1) - fresh1;
      if (keep != Compute(1) || weight_decay != Compute(0) || beta1 * beta1 > beta2) return false;
      return rounds_away(average_rate * (state[0] / (Kokkos::sqrt(state[1] / correction2) + eps)), weight);
    }
    KOKKOS_FUNCTION void decay_state(auto& state, std::int64_t steps) const {
      decay(state[0], Compute(1) - fresh1, steps);
      decay_square(state[1], beta2, steps);
    }
    /// With decoupled decay. The momenta at most double.
    KOKKOS_FUNCTION std::int64_t decay_phase(Compute weight, const auto& state, std::int64_t steps) const {
      if (keep == Compute(1) || weight_decay != Compute(0)) return 0;
      return optim::decay_phase<Compute>(
          {average_rate + average_rate, state[0], state[1], Compute(1) - fresh1, beta2, eps}, weight, keep,
          steps);
    }
    KOKKOS_FORCEINLINE_FUNCTION void decay_weight(auto& weight) const { weight *= keep; }
    KOKKOS_FUNCTION void set_step(const auto& lr, const terms<Compute>& step) {
      gradient_rate = narrowed<Compute>(lr * step.gradient_share / step.gradient_room);
      average_rate = narrowed<Compute>(lr * step.average_share / step.average_room);
      correction2 = step.correction2;
    }
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"}); }
  [[nodiscard]] momenta by_step() const { return {betas, momentum_decay}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    return {make_update<update, Compute>(0.0, 0.0, 1.0 - betas[0], betas[1], 1.0 - betas[1], 1.0, eps,
                                         decoupled_weight_decay ? 0.0 : weight_decay,
                                         decoupled_weight_decay ? 1.0 - lr * weight_decay : 1.0,
                                         maximize ? -1.0 : 1.0),
            Wide(lr)};
  }
  template <class Compute>
  [[nodiscard]] auto coefficients(std::int64_t step) const {
    return update_at<Compute>(*this, step);
  }
  [[nodiscard]] auto ranges() const { return adam_options(*this); }
  void check() const {
    require_options(name, ranges());
    require_options(name, std::array{not_negative("momentum_decay", momentum_decay)});
  }
  /// @}
};

}  // namespace ferry::optim
