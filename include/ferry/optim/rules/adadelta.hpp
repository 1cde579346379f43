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

/// torch.optim.Adadelta (Zeiler 2012).
///
///   g += weight_decay w
///   s = rho s + (1 - rho) g^2
///   d = sqrt(a + eps) / sqrt(s + eps) g
///   a = rho a + (1 - rho) d^2
///   w -= lr d
struct adadelta {
  /// Facts about the rule, see ferry::Optimizer.
  /// @{
  static constexpr std::string_view name = "adadelta";
  static constexpr int min_fields = 2;
  /// @}

  double lr = 1.0;            ///< learning rate, >= 0
  double rho = 0.9;           ///< decay rate of both averages, in [0, 1]
  double eps = 1e-6;          ///< added under both roots, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;      ///< whether to ascend instead of descend

  friend bool operator==(const adadelta&, const adadelta&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute lr, rho, fresh, eps, weight_decay, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] = rho * state[0] + fresh * g * g;
      const Number delta = square_root(state[1] + eps) / square_root(state[0] + eps) * g;
      state[1] = rho * state[1] + fresh * delta * delta;
      weight -= lr * delta;
    }
    /// Without a gradient only the averages decay.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&)[N]) const {
      return weight_decay == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      state[0] *= decay_over(rho, steps);
      state[1] *= decay_over(rho, steps);
    }
    /// @}
  };

  /// The state's fields and their initial values.
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"square_avg"}, field{"acc_delta"});
  }

  /// The update of one step; steps count from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr),           static_cast<Compute>(rho),
            static_cast<Compute>(1.0 - rho),    static_cast<Compute>(eps),
            static_cast<Compute>(weight_decay), static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  /// Throws invalid_argument, naming the option, for one outside of its range.
  void check() const {
    require_not_negative(name, "lr", lr);
    require_option(name, "rho", rho, rho >= 0.0 && rho <= 1.0, "in [0, 1]");
    require_not_negative(name, "eps", eps);
    require_not_negative(name, "weight_decay", weight_decay);
  }
  /// Throws invalid_argument, naming the option, for one that float can't hold.
  void check_in_float() const {
    require_rate_in_float(name, lr);
    require_in_float(name, {{"rho", rho}, {"eps", eps}, {"weight_decay", weight_decay}});
  }
};
static_assert(Optimizer<adadelta>);

}  // namespace ferry::optim
