// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
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

/// torch.optim.NAdam (Dozat 2016): Adam with Nesterov's momentum. P is the product of mu(1) ... mu(step).
///
///   mu(t) = b1 (1 - 0.96^(t momentum_decay) / 2)
///   g += weight_decay w             or, with decoupled_weight_decay, w *= 1 - lr weight_decay
///   m += (1 - b1) (g - m)
///   v = b2 v + (1 - b2) g^2
///   r = sqrt(v / (1 - b2^step)) + eps
///   w -= lr ((1 - mu(step)) / (1 - P) g + mu(step + 1) / (1 - P mu(step + 1)) m) / r
struct nadam {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "nadam";
  static constexpr int min_fields = 2;
  /// @}

  double lr = 2e-3;                            ///< learning rate, >= 0
  std::array<double, 2> betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                           ///< added to the denominator, >= 0
  double weight_decay = 0.0;                   ///< >= 0: L2 penalty, or decoupled
  double momentum_decay = 4e-3;                ///< decay of the momentum with the step number, >= 0
  bool decoupled_weight_decay = false;         ///< whether w *= 1 - lr weight_decay replaces the L2 penalty
  bool maximize = false;                       ///< whether to ascend instead of descend

  friend bool operator==(const nadam&, const nadam&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute from_gradient, from_average, fresh1, beta2, fresh2, correction2, eps, weight_decay, keep, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      weight *= keep;
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] += fresh1 * (g - state[0]);
      state[1] = beta2 * state[1] + fresh2 * g * g;
      const Number root = square_root(state[1] / correction2) + eps;
      weight -= from_gradient * (g / root);
      weight -= from_average * (state[0] / root);
    }
    /// As for adam. The momenta change too slowly to matter.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      const Compute beta1 = Compute(1) - fresh1;
      if (keep != Compute(1) || weight_decay != Compute(0) || beta1 * beta1 > beta2) return false;
      return rounds_away(from_average * (state[0] / (Kokkos::sqrt(state[1] / correction2) + eps)), weight);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      state[0] *= decay_over(Compute(1) - fresh1, steps);
      state[1] *= decay_over(beta2, steps);
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
    double share, room, next, room_of_next;
    Compute correction2;

    friend bool operator==(const terms&, const terms&) = default;
    /// @}
  };
  /// The momenta of all steps.
  struct momenta {
    /// What terms are computed from, see ferry::ScheduledOptimizer.
    /// @{
    std::array<double, 2> betas;
    double momentum_decay;

    friend bool operator==(const momenta&, const momenta&) = default;

    /// Steps count from 1.
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      const double next = momentum_at(step + 1);
      const double product = until(step);
      return {1.0 - momentum_at(step), 1.0 - product, next, 1.0 - product * next,
              static_cast<Compute>(1.0 - std::pow(betas[1], static_cast<double>(step)))};
    }

   private:
    [[nodiscard]] double momentum_at(std::int64_t t) const {
      return betas[0] * (1.0 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay));
    }
    /// The product of the momenta of steps 1 to `step`, up to where it no longer changes 1 - P.
    [[nodiscard]] double until(std::int64_t step) const {
      double product = 1.0;
      for (std::int64_t t = 1; t <= step && product > 1e-20; ++t) product *= momentum_at(t);
      return product;
    }
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
      made.from_gradient = narrowed<Compute>(lr * by.share / by.room);
      made.from_average = narrowed<Compute>(lr * by.next / by.room_of_next);
      made.correction2 = by.correction2;
      return made;
    }
    /// @}
  };
  /// The part of the updates without scheduled options, see ferry::ScheduledOptimizer.
  [[nodiscard]] momenta by_step() const { return {betas, momentum_decay}; }
  /// The scheduled options, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {{static_cast<Compute>(0.0), static_cast<Compute>(0.0), static_cast<Compute>(1.0 - betas[0]),
             static_cast<Compute>(betas[1]), static_cast<Compute>(1.0 - betas[1]), static_cast<Compute>(1.0),
             static_cast<Compute>(eps), static_cast<Compute>(decoupled_weight_decay ? 0.0 : weight_decay),
             static_cast<Compute>(decoupled_weight_decay ? 1.0 - lr * weight_decay : 1.0),
             static_cast<Compute>(maximize ? -1.0 : 1.0)},
            Wide(lr)};
  }

  /// The update of one step; steps count from 1. Powers are computed in double on the host.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const {
    require_adam_options(*this);
    require_not_negative(name, "momentum_decay", momentum_decay);
  }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const { require_adam_in_float(*this); }
};
static_assert(ScheduledOptimizer<nadam>);

}  // namespace ferry::optim
