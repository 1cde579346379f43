// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>
#include <ferry/optim/rules/adam.hpp>

namespace ferry::optim {

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

  /// The part of an update that depends on the step alone, see ferry::ScheduledOptimizer.
  template <class Compute>
  using terms = adam::terms<Compute>;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute keep;
    adam::update<Compute> rest;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      weight *= keep;
      rest.apply_decayed(gradient, weight, state);
    }
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      return keep == Compute(1) && rest.at_rest(weight, state);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      rest.decay_state(state, steps);
    }
    template <int N>
    KOKKOS_FUNCTION std::int64_t decay_phase(Compute weight, const Compute (&state)[N],
                                             std::int64_t steps) const {
      const Compute& square = state[N > 2 ? 2 : 1];
      if (keep == Compute(1) || !(square >= state[1])) return 0;
      return optim::decay_phase<Compute>({rest.step_size, state[0], square, rest.beta1, rest.beta2, rest.eps},
                                         weight, keep, steps);
    }
    template <class Number>
    KOKKOS_FORCEINLINE_FUNCTION void decay_weight(Number& weight) const {
      weight *= keep;
    }
    template <class Wide>
    KOKKOS_FUNCTION void set_step(const Wide& lr, const terms<Compute>& step) {
      rest.set_step(lr, step);
    }
    /// @}
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
    const adam rule{.betas = betas, .eps = eps, .amsgrad = amsgrad, .maximize = maximize};
    return {{static_cast<Compute>(1.0 - lr * weight_decay), rule.template options<Compute>().update},
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
static_assert(ScheduledOptimizer<adamw>);

}  // namespace ferry::optim
