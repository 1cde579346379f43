// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/bias_corrections.hpp>
#include <ferry/optim/detail/decay.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/number.hpp>
#include <ferry/optim/detail/require_option.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// torch.optim.SparseAdam, the lazy Adam that TensorFlow uses for embeddings.
///
///   m += (1 - b1) (g - m)
///   v += (1 - b2) (g^2 - v)
///   w -= lr sqrt(1 - b2^step) / (1 - b1^step) m / (sqrt(v) + eps)
///
/// eps is added to the uncorrected root; adam adds it to the bias-corrected root.
struct sparse_adam {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "sparse_adam";
  static constexpr int min_fields = 2;
  /// @}

  double lr = 1e-3;                            ///< learning rate, >= 0
  std::array<double, 2> betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                           ///< added to the denominator, >= 0
  bool maximize = false;                       ///< whether to ascend instead of descend

  friend bool operator==(const sparse_adam&, const sparse_adam&) = default;

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
      state[0] *= decay_over(Compute(1) - fresh1, steps);
      state[1] *= decay_over(Compute(1) - fresh2, steps);
    }
    /// @}
  };

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"}); }

  /// The part of an update that depends on the step alone.
  template <class Compute>
  struct terms {
    /// Numbers of one step, see ferry::ScheduledOptimizer.
    /// @{
    double correction1, root_correction2;

    friend bool operator==(const terms&, const terms&) = default;
    static terms of(double correction1, double correction2) { return {correction1, std::sqrt(correction2)}; }
    /// @}
  };
  /// The options that a schedule may change, for kernels.
  template <class Compute, class Wide>
  struct options_of {
    /// Options and the update made of them, see ferry::ScheduledOptimizer.
    /// @{
    update<Compute> fixed;
    Wide lr;

    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& by) const {
      update<Compute> made = fixed;
      made.step_size = narrowed<Compute>(lr * by.root_correction2 / by.correction1);
      return made;
    }
    /// @}
  };
  /// The part of the updates without scheduled options, see ferry::ScheduledOptimizer.
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  /// The scheduled options, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {{static_cast<Compute>(0.0), static_cast<Compute>(1.0 - betas[0]),
             static_cast<Compute>(1.0 - betas[1]), static_cast<Compute>(eps),
             static_cast<Compute>(maximize ? -1.0 : 1.0)},
            Wide(lr)};
  }

  /// The update of one step; steps count from 1. Powers are computed in double on the host.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const { require_adam_options(*this); }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const { require_adam_in_float(*this); }
};
static_assert(ScheduledOptimizer<sparse_adam>);

}  // namespace ferry::optim
