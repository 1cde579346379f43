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
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// torch.optim.Adamax (Kingma and Ba 2015, section 7.1).
///
///   g += weight_decay w
///   m += (1 - b1) (g - m)
///   u = max(b2 u, |g| + eps)
///   w -= lr / (1 - b1^step) m / u
struct adamax {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "adamax";
  static constexpr int min_fields = 2;
  /// @}

  double lr = 2e-3;                            ///< learning rate, >= 0
  std::array<double, 2> betas = {0.9, 0.999};  ///< decay rates of m and u, each in [0, 1)
  double eps = 1e-8;                           ///< added to |g|, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;      ///< whether to ascend instead of descend

  friend bool operator==(const adamax&, const adamax&) = default;

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
    /// @}
  };

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_inf"}); }

  /// The part of an update that depends on the step alone.
  template <class Compute>
  struct terms {
    /// Numbers of one step, see ferry::ScheduledOptimizer.
    /// @{
    double correction1;

    friend bool operator==(const terms&, const terms&) = default;
    static terms of(double correction1, double) { return {correction1}; }
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
      made.step_size = narrowed<Compute>(lr / by.correction1);
      return made;
    }
    /// @}
  };
  /// The part of the updates without scheduled options, see ferry::ScheduledOptimizer.
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  /// The scheduled options, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {{static_cast<Compute>(0.0), static_cast<Compute>(1.0 - betas[0]), static_cast<Compute>(betas[1]),
             static_cast<Compute>(eps), static_cast<Compute>(weight_decay),
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
static_assert(ScheduledOptimizer<adamax>);

}  // namespace ferry::optim
