// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

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

  /// The part of an update that depends on the step alone, see ferry::ScheduledOptimizer.
  template <class Compute>
  using terms = correction_terms<double, double, true>;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute step_size, fresh1, fresh2, eps, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = sign * gradient;
      state[0] += fresh1 * (g - state[0]);
      state[1] += fresh2 * (g * g - state[1]);
      weight -= step_size * (state[0] / (square_root(state[1]) + eps));
    }
    /// As for adam.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      const Compute beta1 = Compute(1) - fresh1;
      if (beta1 * beta1 > Compute(1) - fresh2) return false;
      return rounds_away(step_size * (state[0] / (Kokkos::sqrt(state[1]) + eps)), weight);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      decay(state[0], Compute(1) - fresh1, steps);
      decay_square(state[1], Compute(1) - fresh2, steps);
    }
    template <class Wide>
    KOKKOS_FUNCTION void set_step(const Wide& lr, const terms<Compute>& step) {
      step_size = narrowed<Compute>(lr * step.correction2 / step.correction1);
    }
    /// @}
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
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }
  void check() const { require_options(name, adam_options(*this)); }
  void check_in_float() const { require_options_in_float(name, adam_options(*this)); }
  /// @}
};
static_assert(ScheduledOptimizer<sparse_adam>);

}  // namespace ferry::optim
