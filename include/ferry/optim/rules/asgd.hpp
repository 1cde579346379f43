// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/decay.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/require_option.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

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
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "asgd";
  static constexpr int min_fields = 1;
  /// @}

  double lr = 1e-2;           ///< learning rate, >= 0
  double lambd = 1e-4;        ///< decay of the weights, >= 0
  double alpha = 0.75;        ///< power of the decay of eta, >= 0
  double t0 = 1e6;            ///< steps before averaging starts, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;      ///< whether to ascend instead of descend

  friend bool operator==(const asgd&, const asgd&) = default;

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

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"ax"}); }

  /// The part of an update that depends on the step alone.
  template <class Compute>
  struct terms {
    /// Numbers of one step, see ferry::ScheduledOptimizer.
    /// @{
    double done;
    Compute mu;

    friend bool operator==(const terms&, const terms&) = default;
    /// @}
  };
  /// The start of the averaging.
  struct averaging {
    /// What terms are computed from, see ferry::ScheduledOptimizer.
    /// @{
    double t0;

    friend bool operator==(const averaging&, const averaging&) = default;
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      const auto done = static_cast<double>(step - 1);
      return {done, static_cast<Compute>(1.0 / std::max(1.0, done - t0))};
    }
    /// @}
  };
  /// The options that a schedule may change, for kernels.
  template <class Compute, class Wide>
  struct options_of {
    /// Options and the update made of them, see ferry::ScheduledOptimizer.
    /// @{
    Wide lr, lambd;
    double alpha;
    Compute weight_decay, sign;

    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& by) const {
      const Wide base = Wide(1.0) + lambd * lr * by.done;
      const Wide eta = lr / power(static_cast<double>(base), alpha);
      return {narrowed<Compute>(eta), narrowed<Compute>(Wide(1.0) - lambd * eta), by.mu, weight_decay, sign};
    }
    /// @}
  };
  /// The part of the updates without scheduled options, see ferry::ScheduledOptimizer.
  [[nodiscard]] averaging by_step() const { return {t0}; }
  /// The scheduled options, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {Wide(lr), Wide(lambd), alpha, static_cast<Compute>(weight_decay),
            static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  /// The update of one step; steps count from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const {
    require_not_negative(name, "lr", lr);
    require_not_negative(name, "lambd", lambd);
    require_not_negative(name, "alpha", alpha);
    require_not_negative(name, "t0", t0);
    require_not_negative(name, "weight_decay", weight_decay);
  }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const {
    require_rate_in_float(name, lr);
    require_in_float(name, {{"weight_decay", weight_decay}});
  }
};
static_assert(ScheduledOptimizer<asgd>);

}  // namespace ferry::optim
