// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>
#include <ferry/optim/detail/square_sums.hpp>

namespace ferry::optim {

/// torch.optim.Adagrad (Duchi et al. 2011).
///
///   g += weight_decay w
///   s += g^2
///   w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps)
struct adagrad {
  static constexpr std::string_view name = "adagrad";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;                 ///< see ferry::Optimizer

  double lr = 1e-2;                        ///< learning rate, >= 0
  double lr_decay = 0.0;                   ///< decay of lr with the step number, >= 0
  double weight_decay = 0.0;               ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  double initial_accumulator_value = 0.0;  ///< start value of s, >= 0
  double eps = 1e-10;                      ///< added to the denominator, >= 0
  bool maximize = false;                   ///< true to ascend instead of descend

  friend bool operator==(const adagrad&, const adagrad&) = default;

  /// The divisor of lr at each step, see ferry::ScheduledOptimizer.
  struct rate_decay {
    double lr_decay;

    friend bool operator==(const rate_decay&, const rate_decay&) = default;
    template <class Compute>
    [[nodiscard]] double at(std::int64_t step) const {
      return 1.0 + static_cast<double>(step - 1) * lr_decay;
    }
  };

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute lr, weight_decay, eps, sign;

    KOKKOS_FORCEINLINE_FUNCTION void apply(auto& weight, const auto& gradient, auto& state) const {
      const auto g = decayed(sign * gradient, weight_decay, weight);
      state[0] += g * g;
      weight -= lr * (g / (square_root(state[0]) + eps));
    }
    /// Without a gradient nothing changes.
    KOKKOS_FUNCTION bool at_rest(Compute, const auto&) const { return weight_decay == Compute(0); }
    KOKKOS_FUNCTION void decay_state(auto&, std::int64_t) const {}
    KOKKOS_FUNCTION void set_step(const auto& rate, double divisor) {
      lr = narrowed<Compute>(rate / divisor);
    }
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value});
  }
  [[nodiscard]] rate_decay by_step() const { return {lr_decay}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    return {make_update<update, Compute>(0.0, weight_decay, eps, maximize ? -1.0 : 1.0), Wide(lr)};
  }
  template <class Compute>
  [[nodiscard]] auto coefficients(std::int64_t step) const {
    return update_at<Compute>(*this, step);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("lr_decay", lr_decay, float_range::any),
                      not_negative("weight_decay", weight_decay),
                      not_negative("initial_accumulator_value", initial_accumulator_value, float_range::any),
                      not_negative("eps", eps)};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// Adagrad with one accumulator per row (FBGEMM's EXACT_ROWWISE_ADAGRAD; Naumov et al. 2019). The state has
/// one number per row.
///
///   g += weight_decay w
///   s += mean of g^2 over the row
///   w -= lr g / (sqrt(s) + eps)
///
/// The stored s is at most the largest finite number; a step uses the s that it computed.
struct rowwise_adagrad {
  static constexpr std::string_view name = "rowwise_adagrad";  ///< see ferry::Optimizer
  static constexpr int min_fields = 0;                         ///< see ferry::Optimizer

  double lr = 1e-2;                        ///< learning rate, >= 0
  double weight_decay = 0.0;               ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  double initial_accumulator_value = 0.0;  ///< start value of s, >= 0
  double eps = 1e-8;                       ///< added to the denominator, >= 0
  bool maximize = false;                   ///< true to ascend instead of descend

  friend bool operator==(const rowwise_adagrad&, const rowwise_adagrad&) = default;

  template <class Compute>
  struct update {
    static constexpr int sums = 1;
    static constexpr bool sums_squares = true;

    Compute lr, weight_decay, eps, sign;

    /// The number of one element whose square is in the sum of the row.
    KOKKOS_FUNCTION void measure(Compute weight, Compute gradient, const auto&, const auto&,
                                 Compute (&part)[sums]) const {
      part[0] = decayed(sign * gradient, weight_decay, weight);
    }
    /// The accumulator of the row, and the step size of its elements.
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute width,
                                       auto& row) const {
      const auto moment = add_to_moment(row[0], row[0], total[0] / width, unit[0]);
      total[0] = lr / (Kokkos::sqrt(moment.value) * moment.unit + eps);
    }
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, auto&, const Compute (&total)[sums]) const {
      weight -= total[0] * decayed(sign * gradient, weight_decay, weight);
    }
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(row_field{"sum", initial_accumulator_value});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, weight_decay, eps, maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("weight_decay", weight_decay),
                      not_negative("initial_accumulator_value", initial_accumulator_value, float_range::any),
                      not_negative("eps", eps)};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// FTRL-Proximal (McMahan et al. 2013, algorithm 1), per coordinate, with alpha = lr.
///
///   s = (sqrt(n + g^2) - sqrt(n)) / alpha
///   z += g - s w
///   n += g^2
///   w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2)
///
/// The weights of the paper start at zero. A weight with another start value takes the formula's value at its
/// first gradient, because z starts at zero.
struct ftrl {
  static constexpr std::string_view name = "ftrl";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;              ///< see ferry::Optimizer

  double lr = 1e-1;                        ///< alpha of the paper, > 0
  double beta = 1.0;                       ///< added to sqrt(n), >= 0
  double l1 = 0.0;                         ///< L1 penalty, >= 0
  double l2 = 0.0;                         ///< L2 penalty, >= 0
  double initial_accumulator_value = 0.0;  ///< start value of n, >= 0
  bool maximize = false;                   ///< true to ascend instead of descend

  friend bool operator==(const ftrl&, const ftrl&) = default;

  template <class Compute>
  struct update {
    static constexpr bool by_lanes = true;

    Compute inverse_lr, beta, l1, l2, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = sign * gradient;
      const Number before = square_root(state[0]);
      state[0] += g * g;
      const Number root = square_root(state[0]);
      state[1] += g - (root - before) * inverse_lr * weight;
      const Number z = state[1];
      Number clamp = either(z > Number(l1), Number(l1), z);
      clamp = either(clamp < Number(-l1), Number(-l1), clamp);
      const Number divisor = (beta + root) * inverse_lr + l2;
      // The divisor is zero if there was no gradient yet and beta and l2 are zero. So is the dividend:
      // divide by 1.
      weight = (clamp - z) / (divisor + (Number(Compute(1)) - sign_of(divisor)));
    }
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value}, field{"linear"});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(1.0 / lr, beta, l1, l2, maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{option_range{"lr", lr, lr > 0.0, "> 0", float_range::may_vanish},
                      not_negative("beta", beta), not_negative("l1", l1), not_negative("l2", l2),
                      not_negative("initial_accumulator_value", initial_accumulator_value, float_range::any)};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const {
    require_options_in_float(name, ranges());
    const double inverse = 1.0 / lr;
    if (float_overflow(inverse) != nullptr) require_float(name, "lr", lr, "so small that 1 / lr is infinite");
    require_float(name, "lr", lr, float_underflow(inverse));
  }
  /// @}
};

}  // namespace ferry::optim
