// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// torch.optim.RMSprop (Tieleman and Hinton 2012; centered: Graves 2013).
///
///   g += weight_decay w
///   s = alpha s + (1 - alpha) g^2
///   a += (1 - alpha) (g - a)        only if centered; s - a^2 then replaces s below
///   d = g / (sqrt(s) + eps)
///   b = momentum b + d              only with momentum; w -= lr b then replaces the last line
///   w -= lr d
struct rmsprop {
  static constexpr std::string_view name = "rmsprop";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;                 ///< see ferry::Optimizer

  double lr = 1e-2;           ///< learning rate, >= 0
  double alpha = 0.99;        ///< decay rate of s, >= 0
  double eps = 1e-8;          ///< added to the denominator, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  double momentum = 0.0;      ///< factor of the momentum buffer b, >= 0; 0 for none
  bool centered = false;      ///< true to subtract the squared mean from s
  bool maximize = false;      ///< true to ascend instead of descend

  friend bool operator==(const rmsprop&, const rmsprop&) = default;

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute lr, alpha, fresh, eps, weight_decay, momentum, sign;
    bool centered;

    friend bool operator==(const update&, const update&) = default;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = decayed(sign * gradient, weight_decay, weight);
      state[0] = alpha * state[0] + fresh * g * g;
      Number square = state[0];
      // With two fields, the second belongs to the option that is set; with three, both are set.
      if constexpr (N > 1)
        if (centered) {
          Number& average = state[N - 1];
          average += fresh * (g - average);
          square -= average * average;
        }
      Number direction = g / (square_root(square) + eps);
      if constexpr (N > 1)
        if (N > 2 || !centered) {
          state[1] = momentum * state[1] + direction;
          direction = state[1];
        }
      weight -= lr * direction;
    }
    /// Without a gradient and weight decay only the averages decay. Momentum would continue to change the
    /// weight.
    KOKKOS_FUNCTION bool at_rest(Compute, const auto&) const {
      return weight_decay == Compute(0) && momentum == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      decay_square(state[0], alpha, steps);
      if constexpr (N > 1)
        if (centered) decay(state[N - 1], Compute(1) - fresh, steps);
    }
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"square_avg"}, field{"momentum_buffer", 0.0, momentum != 0.0},
                                   field{"grad_avg", 0.0, centered});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, alpha, 1.0 - alpha, eps, weight_decay, momentum,
                                        maximize ? -1.0 : 1.0, centered);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("alpha", alpha), not_negative("eps", eps),
                      not_negative("weight_decay", weight_decay), not_negative("momentum", momentum)};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// torch.optim.Adadelta (Zeiler 2012).
///
///   g += weight_decay w
///   s = rho s + (1 - rho) g^2
///   d = sqrt(a + eps) / sqrt(s + eps) g
///   a = rho a + (1 - rho) d^2
///   w -= lr d
struct adadelta {
  static constexpr std::string_view name = "adadelta";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;                  ///< see ferry::Optimizer

  double lr = 1.0;            ///< learning rate, >= 0
  double rho = 0.9;           ///< decay rate of both averages, in [0, 1]
  double eps = 1e-6;          ///< added under both roots, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;      ///< true to ascend instead of descend

  friend bool operator==(const adadelta&, const adadelta&) = default;

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute lr, rho, fresh, eps, weight_decay, sign;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      const auto g = decayed(sign * gradient, weight_decay, weight);
      state[0] = rho * state[0] + fresh * g * g;
      const auto delta = square_root(state[1] + eps) / square_root(state[0] + eps) * g;
      state[1] = rho * state[1] + fresh * delta * delta;
      weight -= lr * delta;
    }
    /// Without a gradient and weight decay only the averages decay.
    KOKKOS_FUNCTION bool at_rest(Compute, const auto&) const { return weight_decay == Compute(0); }
    KOKKOS_FUNCTION void decay_state(auto& state, std::int64_t steps) const {
      decay_square(state[0], rho, steps);
      decay(state[1], rho, steps);
    }
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"square_avg"}, field{"acc_delta"});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, rho, 1.0 - rho, eps, weight_decay, maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), option_range{"rho", rho, rho >= 0.0 && rho <= 1.0, "in [0, 1]"},
                      not_negative("eps", eps), not_negative("weight_decay", weight_decay)};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// torch.optim.Rprop (Riedmiller and Braun 1993): w -= sign(g) size, with a step size of its own for every
/// element. The size grows by the factor etas[1], up to step_sizes[1], while the gradient keeps its sign. It
/// shrinks by etas[0], down to step_sizes[0], when the sign changes; the gradient is then taken as zero once.
/// The first gradient of a row leaves the size unchanged.
struct rprop {
  static constexpr std::string_view name = "rprop";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;               ///< see ferry::Optimizer

  double lr = 1e-2;                         ///< first step size of every element, >= 0
  std::array<double, 2> etas = {0.5, 1.2};  ///< factors that shrink and grow a step size: in (0, 1), > 1
  std::array<double, 2> step_sizes = {1e-6, 50.0};  ///< least and largest step size, >= 0 and in order
  bool maximize = false;                            ///< true to ascend instead of descend

  friend bool operator==(const rprop&, const rprop&) = default;

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute shrink, grow, least, most, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = sign * gradient;
      const Number agreement = sign_of(g * state[0]);
      // Each is 0 or 1. Products with them are exact and replace branches, see sign_of.
      const Number goes_on = Number(Compute(0.5f)) * (agreement * agreement + agreement);
      const Number turned = Number(Compute(0.5f)) * (agreement * agreement - agreement);
      Number size =
          state[1] * (goes_on * grow + turned * shrink + (Number(Compute(1)) - agreement * agreement));
      size = either(size < Number(least), Number(least), size);
      size = either(size > Number(most), Number(most), size);
      weight -= size * (sign_of(g) * (Number(Compute(1)) - turned));
      state[0] = either(turned > Number(Compute(0)), Number(Compute(0)), g);
      state[1] = size;
    }
    /// Without a gradient nothing changes once the stored gradient is zero.
    KOKKOS_FUNCTION bool at_rest(Compute, const auto& state) const {
      return state[0] == Compute(0) && state[1] >= least && state[1] <= most;
    }
    KOKKOS_FUNCTION void decay_state(auto&, std::int64_t) const {}
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"prev"}, field{"step_size", lr}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(etas[0], etas[1], step_sizes[0], step_sizes[1],
                                        maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{
        not_negative("lr", lr, float_range::any),
        option_range{"etas[0]", etas[0], etas[0] > 0.0 && etas[0] < 1.0, "in (0, 1)"},
        option_range{"etas[1]", etas[1], etas[1] > 1.0, "> 1"}, not_negative("step_sizes[0]", step_sizes[0]),
        option_range{"step_sizes[1]", step_sizes[1], step_sizes[1] >= step_sizes[0], ">= step_sizes[0]"}};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

}  // namespace ferry::optim
