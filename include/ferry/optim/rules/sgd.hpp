// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/optim/detail/rule.hpp>

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

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute lr, momentum, fresh, weight_decay, sign;
    bool nesterov;

    friend bool operator==(const update&, const update&) = default;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      Number g = decayed(sign * gradient, weight_decay, weight);
      if (momentum != Compute(0)) {
        state[0] = momentum * state[0] + fresh * g;
        g = nesterov ? g + momentum * state[0] : state[0];
      }
      weight -= lr * g;
    }
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      if (weight_decay != Compute(0)) return false;
      return momentum == Compute(0) || (momentum < Compute(1) && rounds_away(lr * state[0], weight));
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      if (momentum != Compute(0)) decay(state[0], momentum, steps);
    }
    /// With momentum the decay would continue in the buffer.
    template <int N>
    KOKKOS_FUNCTION std::int64_t decay_phase(Compute, const Compute (&)[N], std::int64_t steps) const {
      return momentum == Compute(0) && weight_decay != Compute(0) ? steps : 0;
    }
    template <class Number>
    KOKKOS_FORCEINLINE_FUNCTION void decay_weight(Number& weight) const {
      weight -= lr * (Number(sign * Compute(0)) + weight_decay * weight);
    }
    /// @}
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
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(LinearOptimizer<sgd>);

}  // namespace ferry::optim
