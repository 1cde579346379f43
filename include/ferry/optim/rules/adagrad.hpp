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

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::optim {

/// torch.optim.Adagrad (Duchi et al. 2011).
///
///   g += weight_decay w
///   s += g^2
///   w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps)
struct adagrad {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "adagrad";
  static constexpr int min_fields = 1;
  /// @}

  double lr = 1e-2;                        ///< learning rate, >= 0
  double lr_decay = 0.0;                   ///< decay of lr with the step number, >= 0
  double weight_decay = 0.0;               ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  double initial_accumulator_value = 0.0;  ///< start value of s, >= 0
  double eps = 1e-10;                      ///< added to the denominator, >= 0
  bool maximize = false;                   ///< whether to ascend instead of descend

  friend bool operator==(const adagrad&, const adagrad&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute lr, weight_decay, eps, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] += g * g;
      weight -= lr * (g / (square_root(state[0]) + eps));
    }
    /// Without a gradient nothing changes.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&)[N]) const {
      return weight_decay == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&)[N], std::int64_t) const {}
    /// @}
  };

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value});
  }

  /// The part of an update that depends on the step alone.
  template <class Compute>
  struct terms {
    /// Numbers of one step, see ferry::ScheduledOptimizer.
    /// @{
    double divisor;

    friend bool operator==(const terms&, const terms&) = default;
    /// @}
  };
  /// The decay of lr.
  struct rate_decay {
    /// What terms are computed from, see ferry::ScheduledOptimizer.
    /// @{
    double lr_decay;

    friend bool operator==(const rate_decay&, const rate_decay&) = default;
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      return {1.0 + static_cast<double>(step - 1) * lr_decay};
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
      made.lr = narrowed<Compute>(lr / by.divisor);
      return made;
    }
    /// @}
  };
  /// The part of the updates without scheduled options, see ferry::ScheduledOptimizer.
  [[nodiscard]] rate_decay by_step() const { return {lr_decay}; }
  /// The scheduled options, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {{static_cast<Compute>(0.0), static_cast<Compute>(weight_decay), static_cast<Compute>(eps),
             static_cast<Compute>(maximize ? -1.0 : 1.0)},
            Wide(lr)};
  }

  /// The update of one step; steps count from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const {
    require_not_negative(name, "lr", lr);
    require_not_negative(name, "lr_decay", lr_decay);
    require_not_negative(name, "weight_decay", weight_decay);
    require_not_negative(name, "initial_accumulator_value", initial_accumulator_value);
    require_not_negative(name, "eps", eps);
  }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const {
    require_rate_in_float(name, lr);
    require_in_float(name, {{"eps", eps}, {"weight_decay", weight_decay}});
  }
};
static_assert(ScheduledOptimizer<adagrad>);

}  // namespace ferry::optim
