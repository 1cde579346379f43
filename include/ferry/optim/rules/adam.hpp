// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// torch.optim.Adam (Kingma and Ba 2015).
///
///   g += weight_decay w
///   m = b1 m + (1 - b1) g
///   v = b2 v + (1 - b2) g^2
///   w -= lr / (1 - b1^step) m / (sqrt(v) / sqrt(1 - b2^step) + eps)
///
/// With amsgrad (Reddi et al. 2018) the last line uses the largest v so far. Only the rows of the batch are
/// updated. torch.optim.SparseAdam adds eps to another root: see sparse_adam.
struct adam {
  static constexpr std::string_view name = "adam";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;              ///< see ferry::Optimizer

  double lr = 1e-3;                  ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                 ///< added to the denominator, >= 0
  double weight_decay = 0.0;         ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool amsgrad = false;              ///< true to divide by the largest v so far
  bool maximize = false;             ///< true to ascend instead of descend

  friend bool operator==(const adam&, const adam&) = default;

  template <class Compute>
  using terms = correction_terms<double, Compute, true>;  ///< see ferry::ScheduledOptimizer

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute step_size, root_correction2;
    Compute beta1, beta2, fresh1, fresh2, eps, weight_decay;  // fresh1 and weight_decay have maximize's sign
    Compute keep;                                             // of decoupled weight decay; 1 for none

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      weight *= keep;
      const Number g = decayed(gradient, weight_decay, weight);
      state[0] = beta1 * state[0] + fresh1 * g;
      state[1] = beta2 * state[1] + fresh2 * g * g;
      if constexpr (N > 2) state[2] = either(state[2] > state[1], state[2], state[1]);
      weight -= step_size * (state[0] / (square_root(state[N > 2 ? 2 : 1]) / root_correction2 + eps));
    }
    /// Without a gradient the weight changes by a multiple of m / sqrt(v), which decays if b1^2 <= b2.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      if (keep != Compute(1) || weight_decay != Compute(0) || beta1 * beta1 > beta2) return false;
      const Compute square = state[N > 2 ? 2 : 1];
      return rounds_away(step_size * (state[0] / (Kokkos::sqrt(square) / root_correction2 + eps)), weight);
    }
    KOKKOS_FUNCTION void decay_state(auto& state, std::int64_t steps) const {
      decay(state[0], beta1, steps);
      decay_square(state[1], beta2, steps);
    }
    template <int N>
    KOKKOS_FUNCTION std::int64_t decay_phase(Compute weight, const Compute (&state)[N],
                                             std::int64_t steps) const {
      const Compute& square = state[N > 2 ? 2 : 1];
      if (keep == Compute(1) || !(square >= state[1])) return 0;
      return optim::decay_phase<Compute>({step_size, state[0], square, beta1, beta2, eps}, weight, keep,
                                         steps);
    }
    KOKKOS_FORCEINLINE_FUNCTION void decay_weight(auto& weight) const { weight *= keep; }
    KOKKOS_FUNCTION void set_step(const auto& lr, const terms<Compute>& step) {
      step_size = narrowed<Compute>(lr / step.correction1);
      root_correction2 = step.correction2;
    }
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"},
                                   field{"max_exp_avg_sq", 0.0, amsgrad});
  }
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    const double sign = maximize ? -1.0 : 1.0;
    return {make_update<update, Compute>(0.0, 1.0, betas[0], betas[1], sign * (1.0 - betas[0]),
                                         1.0 - betas[1], eps, sign * weight_decay, 1.0),
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

/// torch.optim.AdamW (Loshchilov and Hutter 2019): decoupled weight decay, then adam.
///
///   w *= 1 - lr weight_decay
///   m = b1 m + (1 - b1) g
///   v = b2 v + (1 - b2) g^2
///   w -= lr / (1 - b1^step) m / (sqrt(v) / sqrt(1 - b2^step) + eps)
///
/// With amsgrad (Reddi et al. 2018) the last line uses the largest v so far. Only the rows of the batch are
/// updated, and only these rows decay, but under step_count::catch_up.
struct adamw {
  static constexpr std::string_view name = "adamw";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;               ///< see ferry::Optimizer

  double lr = 1e-3;                  ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                 ///< added to the denominator, >= 0
  double weight_decay = 1e-2;        ///< decoupled, >= 0: w *= 1 - lr weight_decay
  bool amsgrad = false;              ///< true to divide by the largest v so far
  bool maximize = false;             ///< true to ascend instead of descend

  friend bool operator==(const adamw&, const adamw&) = default;

  template <class Compute>
  using update = adam::update<Compute>;  ///< see ferry::ScheduledOptimizer
  template <class Compute>
  using terms = adam::terms<Compute>;  ///< see ferry::ScheduledOptimizer

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"},
                                   field{"max_exp_avg_sq", 0.0, amsgrad});
  }
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    const adam rule{.betas = betas, .eps = eps, .amsgrad = amsgrad, .maximize = maximize};
    auto result = rule.template options<Compute, Wide>();
    result.lr = Wide(lr);
    result.update.keep = static_cast<Compute>(1.0 - lr * weight_decay);
    return result;
  }
  template <class Compute>
  [[nodiscard]] auto coefficients(std::int64_t step) const {
    return update_at<Compute>(*this, step);
  }
  [[nodiscard]] auto ranges() const { return adam_options(*this); }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// torch.optim.SparseAdam, the lazy Adam that TensorFlow uses for embeddings.
///
///   m += (1 - b1) (g - m)
///   v += (1 - b2) (g^2 - v)
///   w -= lr sqrt(1 - b2^step) / (1 - b1^step) m / (sqrt(v) + eps)
///
/// eps is added to the uncorrected root; adam adds it to the bias-corrected root.
struct sparse_adam {
  static constexpr std::string_view name = "sparse_adam";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;                     ///< see ferry::Optimizer

  double lr = 1e-3;                  ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                 ///< added to the denominator, >= 0
  bool maximize = false;             ///< true to ascend instead of descend

  friend bool operator==(const sparse_adam&, const sparse_adam&) = default;

  template <class Compute>
  using terms = correction_terms<double, double, true>;  ///< see ferry::ScheduledOptimizer

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute step_size, fresh1, fresh2, eps, sign;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      const auto g = sign * gradient;
      state[0] += fresh1 * (g - state[0]);
      state[1] += fresh2 * (g * g - state[1]);
      weight -= step_size * (state[0] / (square_root(state[1]) + eps));
    }
    /// As for adam.
    KOKKOS_FUNCTION bool at_rest(Compute weight, const auto& state) const {
      const Compute beta1 = Compute(1) - fresh1;
      if (beta1 * beta1 > Compute(1) - fresh2) return false;
      return rounds_away(step_size * (state[0] / (Kokkos::sqrt(state[1]) + eps)), weight);
    }
    KOKKOS_FUNCTION void decay_state(auto& state, std::int64_t steps) const {
      decay(state[0], Compute(1) - fresh1, steps);
      decay_square(state[1], Compute(1) - fresh2, steps);
    }
    KOKKOS_FUNCTION void set_step(const auto& lr, const terms<Compute>& step) {
      step_size = narrowed<Compute>(lr * step.correction2 / step.correction1);
    }
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"}); }
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    return {make_update<update, Compute>(0.0, 1.0 - betas[0], 1.0 - betas[1], eps, maximize ? -1.0 : 1.0),
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

}  // namespace ferry::optim
