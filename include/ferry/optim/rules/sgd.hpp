// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/optim/detail/rule.hpp>

#include <algorithm>

namespace ferry::optim {

/// torch.optim.SGD.
///
///   g += weight_decay w
///   b = momentum b + (1 - dampening) g         at the first step b = g
///   w -= lr (nesterov ? g + momentum b : b)
///
/// Only the rows of the batch are updated; the others keep b. Without momentum there is no state.
struct sgd {
  static constexpr std::string_view name = "sgd";  ///< see ferry::Optimizer
  static constexpr int min_fields = 0;             ///< see ferry::Optimizer

  double lr = 1e-3;           ///< learning rate, >= 0
  double momentum = 0.0;      ///< factor of the momentum buffer b, >= 0; 0 for none
  double dampening = 0.0;     ///< part of the gradient that the momentum buffer leaves out
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool nesterov = false;      ///< true to use Nesterov's momentum; needs momentum > 0 and dampening 0
  bool maximize = false;      ///< true to ascend instead of descend

  friend bool operator==(const sgd&, const sgd&) = default;

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute lr, momentum, fresh, weight_decay, sign;
    bool nesterov;

    friend bool operator==(const update&, const update&) = default;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      auto g = decayed(sign * gradient, weight_decay, weight);
      if (momentum != Compute(0)) {
        state[0] = momentum * state[0] + fresh * g;
        g = nesterov ? g + momentum * state[0] : state[0];
      }
      weight -= lr * g;
    }
    KOKKOS_FUNCTION bool at_rest(Compute weight, const auto& state) const {
      if (weight_decay != Compute(0)) return false;
      return momentum == Compute(0) || (momentum < Compute(1) && rounds_away(lr * state[0], weight));
    }
    KOKKOS_FUNCTION void decay_state(auto& state, std::int64_t steps) const {
      if (momentum != Compute(0)) decay(state[0], momentum, steps);
    }
    /// With momentum the decay would continue in the buffer.
    KOKKOS_FUNCTION std::int64_t decay_phase(Compute, const auto&, std::int64_t steps) const {
      return momentum == Compute(0) && weight_decay != Compute(0) ? steps : 0;
    }
    template <class Number>
    KOKKOS_FORCEINLINE_FUNCTION void decay_weight(Number& weight) const {
      weight -= lr * (Number(sign * Compute(0)) + weight_decay * weight);
    }
  };

  /// Members of ferry::Optimizer and ferry::LinearOptimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"momentum_buffer", 0.0, momentum != 0.0});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return make_update<update, Compute>(lr, momentum, step == 1 ? 1.0 : 1.0 - dampening, weight_decay,
                                        maximize ? -1.0 : 1.0, nesterov);
  }
  [[nodiscard]] bool is_linear() const { return momentum == 0.0 && weight_decay == 0.0; }
  template <class Compute>
  [[nodiscard]] Compute weight_per_gradient() const {
    return static_cast<Compute>(maximize ? lr : -lr);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("momentum", momentum),
                      not_negative("weight_decay", weight_decay),
                      option_range{"dampening", dampening, true, "a number"}};
  }
  void check() const {
    require_options(name, ranges());
    if (nesterov && (momentum <= 0.0 || dampening != 0.0))
      throw invalid_argument("ferry::optim::sgd: nesterov needs momentum > 0 and dampening 0");
  }
  /// @}
};

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
  static constexpr std::string_view name = "asgd";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;              ///< see ferry::Optimizer

  double lr = 1e-2;           ///< learning rate, >= 0
  double lambd = 1e-4;        ///< decay of the weights, >= 0
  double alpha = 0.75;        ///< power of the decay of eta, >= 0
  double t0 = 1e6;            ///< steps before averaging starts, >= 0
  double weight_decay = 0.0;  ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  bool maximize = false;      ///< true to ascend instead of descend

  friend bool operator==(const asgd&, const asgd&) = default;

  /// The number of earlier steps and mu, see ferry::ScheduledOptimizer.
  template <class Compute>
  struct terms {
    double earlier_steps;  // step - 1
    Compute mu;

    friend bool operator==(const terms&, const terms&) = default;
  };
  /// The start of the averaging, see ferry::ScheduledOptimizer.
  struct averaging {
    double t0;

    friend bool operator==(const averaging&, const averaging&) = default;
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      const auto earlier_steps = static_cast<double>(step - 1);
      return {earlier_steps, static_cast<Compute>(1.0 / std::max(1.0, earlier_steps - t0))};
    }
  };

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute eta, keep, mu, weight_decay, sign;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      const auto g = decayed(sign * gradient, weight_decay, weight);
      weight = keep * weight - eta * g;
      state[0] = mu == Compute(1) ? weight : state[0] + mu * (weight - state[0]);
    }
  };

  /// The options that a schedule may change, see ferry::ScheduledOptimizer.
  template <class Compute, class Wide>
  struct eta_options {
    Wide lr, lambd;
    double alpha;
    Compute weight_decay, sign;

    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& step) const {
      const Wide base = Wide(1.0) + lambd * lr * step.earlier_steps;
      const Wide eta = lr / power(static_cast<double>(base), alpha);
      return {narrowed<Compute>(eta), narrowed<Compute>(Wide(1.0) - lambd * eta), step.mu, weight_decay,
              sign};
    }
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"ax"}); }
  [[nodiscard]] averaging by_step() const { return {t0}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] eta_options<Compute, Wide> options() const {
    return {Wide(lr), Wide(lambd), alpha, static_cast<Compute>(weight_decay),
            static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }
  template <class Compute>
  [[nodiscard]] auto coefficients(std::int64_t step) const {
    return update_at<Compute>(*this, step);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("lambd", lambd, float_range::any),
                      not_negative("alpha", alpha, float_range::any),
                      not_negative("t0", t0, float_range::any), not_negative("weight_decay", weight_decay)};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// Lion (Chen et al. 2023, algorithm 2), with decoupled weight decay.
///
///   w *= 1 - lr weight_decay
///   w -= lr sign(b1 m + (1 - b1) g)
///   m = b2 m + (1 - b2) g
struct lion {
  static constexpr std::string_view name = "lion";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;              ///< see ferry::Optimizer

  double lr = 1e-4;                 ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.99};  ///< weight of m in the direction, decay rate of m; in [0, 1)
  double weight_decay = 0.0;        ///< decoupled, >= 0: w *= 1 - lr weight_decay
  bool maximize = false;            ///< true to ascend instead of descend

  friend bool operator==(const lion&, const lion&) = default;

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute lr, keep, beta1, fresh1, beta2, fresh2, sign;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      const auto g = sign * gradient;
      const auto direction = beta1 * state[0] + fresh1 * g;
      weight = keep * weight - lr * sign_of(direction);
      state[0] = beta2 * state[0] + fresh2 * g;
    }
    /// Without a gradient a weight moves by lr until m is zero, which decay does not make it.
    KOKKOS_FUNCTION bool at_rest(Compute, const auto& state) const {
      return keep == Compute(1) && state[0] == Compute(0);
    }
    KOKKOS_FUNCTION void decay_state(auto&, std::int64_t) const {}
    KOKKOS_FUNCTION std::int64_t decay_phase(Compute, const auto& state, std::int64_t steps) const {
      return state[0] == Compute(0) ? steps : 0;
    }
    KOKKOS_FORCEINLINE_FUNCTION void decay_weight(auto& weight) const { weight *= keep; }
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, 1.0 - lr * weight_decay, betas[0], 1.0 - betas[0], betas[1],
                                        1.0 - betas[1], maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), decay_rate("betas[0]", betas[0]), decay_rate("betas[1]", betas[1]),
                      not_negative("weight_decay", weight_decay, float_range::any)};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

}  // namespace ferry::optim
