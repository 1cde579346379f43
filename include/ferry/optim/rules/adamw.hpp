// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/bias_corrections.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/rules/adam.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// torch.optim.AdamW (Loshchilov and Hutter 2019): decoupled weight decay, then adam.
///
///   w *= 1 - lr weight_decay
///   m = b1 m + (1 - b1) g
///   v = b2 v + (1 - b2) g^2
///   w -= lr / (1 - b1^step) m / (sqrt(v) / sqrt(1 - b2^step) + eps)
///
/// With amsgrad (Reddi et al. 2018) the last line uses the largest v so far. Only the rows of the batch are
/// updated, and only these rows decay.
struct adamw {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "adamw";
  static constexpr int min_fields = 2;
  /// @}

  double lr = 1e-3;                            ///< learning rate, >= 0
  std::array<double, 2> betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                           ///< added to the denominator, >= 0
  double weight_decay = 1e-2;                  ///< decoupled, >= 0: w *= 1 - lr weight_decay
  bool amsgrad = false;                        ///< whether to divide by the largest v so far
  bool maximize = false;                       ///< whether to ascend instead of descend

  friend bool operator==(const adamw&, const adamw&) = default;

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
      rest.apply(weight, gradient, state);
    }
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      return keep == Compute(1) && rest.at_rest(weight, state);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      rest.decay_state(state, steps);
    }
    /// @}
  };

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"},
                                   field{"max_exp_avg_sq", 0.0, amsgrad});
  }

  /// The options that a schedule may change, for kernels.
  template <class Compute, class Wide>
  struct options_of {
    /// Options and the update made of them, see ferry::ScheduledOptimizer.
    /// @{
    Compute keep;
    adam::options_of<Compute, Wide> rest;

    KOKKOS_FUNCTION update<Compute> at(const adam::terms<Compute>& by) const { return {keep, rest.at(by)}; }
    /// @}
  };
  /// The part of the updates without scheduled options, see ferry::ScheduledOptimizer.
  [[nodiscard]] bias_corrections<adam::terms> by_step() const { return {betas}; }
  /// The scheduled options, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    const adam rule{
        .lr = lr, .betas = betas, .eps = eps, .weight_decay = 0.0, .amsgrad = amsgrad, .maximize = maximize};
    return {static_cast<Compute>(1.0 - lr * weight_decay), rule.template options<Compute, Wide>()};
  }

  /// The update of one step; steps count from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const { require_adam_options(*this); }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const { require_adam_in_float(*this); }
};
static_assert(ScheduledOptimizer<adamw>);

}  // namespace ferry::optim
