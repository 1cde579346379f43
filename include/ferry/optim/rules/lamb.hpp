// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>
#include <ferry/optim/detail/square_sums.hpp>

namespace ferry::optim {

/// LAMB (You et al. 2020, algorithm 2). Each row of the table is a layer of the paper.
///
///   m = b1 m + (1 - b1) g
///   v = b2 v + (1 - b2) g^2
///   r = m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + eps) + weight_decay w
///   w -= lr |w| / |r| r    with the norms of the row; w -= lr r if one of them is zero
struct lamb {
  static constexpr std::string_view name = "lamb";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;              ///< see ferry::Optimizer

  double lr = 1e-3;                  ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-6;                 ///< added to the denominator, >= 0
  double weight_decay = 0.0;         ///< >= 0: added to the direction r as weight_decay * w
  bool maximize = false;             ///< true to ascend instead of descend

  friend bool operator==(const lamb&, const lamb&) = default;

  template <class Compute>
  using terms = correction_terms<Compute, Compute>;  ///< see ferry::ScheduledOptimizer

  template <class Compute>
  struct update {
    static constexpr int sums = 2;
    static constexpr bool sums_squares = true;

    Compute lr, beta1, beta2, fresh1, fresh2, correction1, correction2, eps, weight_decay, sign;

    template <int N>
    KOKKOS_FUNCTION Compute direction(Compute weight, Compute gradient, Compute (&state)[N]) const {
      const Compute g = sign * gradient;
      state[0] = beta1 * state[0] + fresh1 * g;
      state[1] = beta2 * state[1] + fresh2 * g * g;
      return decayed(state[0] / correction1 / (Kokkos::sqrt(state[1] / correction2) + eps), weight_decay,
                     weight);
    }

    /// The numbers of one element whose squares are in the sums of the row.
    template <int N>
    KOKKOS_FUNCTION void measure(Compute weight, Compute gradient, const Compute (&state)[N], const auto&,
                                 Compute (&part)[sums]) const {
      Compute after[N];
      for (int f = 0; f < N; ++f) after[f] = state[f];
      part[0] = weight;
      part[1] = direction(weight, gradient, after);
    }
    /// The step size of the row, from its sums.
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute,
                                       auto&) const {
      const bool scales = total[0] > Compute(0) && total[1] > Compute(0);
      const Compute ratio = Kokkos::sqrt(total[0]) / Kokkos::sqrt(total[1]) * unit[0] * inverse_unit(unit[1]);
      total[0] = scales ? lr * saturated(ratio, total[0]) : lr;
    }
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, auto& state,
                               const Compute (&total)[sums]) const {
      weight -= total[0] * direction(weight, gradient, state);
    }
    KOKKOS_FUNCTION void set_step(const auto& rate, const terms<Compute>& step) {
      lr = narrowed<Compute>(rate);
      correction1 = step.correction1;
      correction2 = step.correction2;
    }
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"}); }
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    return {make_update<update, Compute>(0.0, betas[0], betas[1], 1.0 - betas[0], 1.0 - betas[1], 1.0, 1.0,
                                         eps, weight_decay, maximize ? -1.0 : 1.0),
            Wide(lr)};
  }
  template <class Compute>
  [[nodiscard]] auto coefficients(std::int64_t step) const {
    return update_at<Compute>(*this, step);
  }
  [[nodiscard]] auto ranges() const { return adam_options(*this); }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// LARS (You et al. 2017, algorithm 1). Each row of the table is a layer of the paper.
///
///   rate = trust_coefficient |w| / (|g| + weight_decay |w| + eps)    with the norms of the row;
///                                                                    1 if one of them is zero
///   b = momentum b + lr rate (g + weight_decay w)
///   w -= b
struct lars {
  static constexpr std::string_view name = "lars";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;              ///< see ferry::Optimizer

  double lr = 1e-1;                 ///< learning rate, >= 0
  double momentum = 0.9;            ///< factor of the momentum buffer b, >= 0
  double weight_decay = 0.0;        ///< L2 penalty, >= 0: added to the gradient as weight_decay * w
  double trust_coefficient = 1e-3;  ///< ratio of the step to the norm of the weights, >= 0
  double eps = 1e-8;                ///< added to the denominator of rate, >= 0
  bool maximize = false;            ///< true to ascend instead of descend

  friend bool operator==(const lars&, const lars&) = default;

  template <class Compute>
  struct update {
    static constexpr int sums = 2;
    static constexpr bool sums_squares = true;

    Compute lr, momentum, weight_decay, trust_coefficient, eps, sign;

    /// The numbers of one element whose squares are in the sums of the row.
    KOKKOS_FUNCTION void measure(Compute weight, Compute gradient, const auto&, const auto&,
                                 Compute (&part)[sums]) const {
      part[0] = weight;
      part[1] = gradient;
    }
    /// The step size of the row, from its sums.
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute,
                                       auto&) const {
      const bool scales = total[0] > Compute(0) && total[1] > Compute(0);
      // The ratio of the norms is finite if both are divided by the larger unit, which is 1 or more.
      const Compute larger = unit[0] > unit[1] ? unit[0] : unit[1];
      const Compute inverse = larger > Compute(1) ? inverse_unit(larger) : Compute(1);
      const Compute weights = Kokkos::sqrt(total[0]) * (unit[0] * inverse);
      const Compute gradients = Kokkos::sqrt(total[1]) * (unit[1] * inverse);
      const Compute rate = trust_coefficient * weights / (gradients + weight_decay * weights + eps * inverse);
      total[0] = scales ? lr * saturated(rate, weights) : lr;
    }
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, auto& state,
                               const Compute (&total)[sums]) const {
      state[0] = momentum * state[0] + total[0] * decayed(sign * gradient, weight_decay, weight);
      weight -= state[0];
    }
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"momentum_buffer"}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(lr, momentum, weight_decay, trust_coefficient, eps,
                                        maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{learning_rate(lr), not_negative("momentum", momentum),
                      not_negative("weight_decay", weight_decay),
                      not_negative("trust_coefficient", trust_coefficient), not_negative("eps", eps)};
  }
  void check() const { require_options(name, ranges()); }
  /// @}
};

/// Adam with one second moment per row (FBGEMM's PARTIAL_ROWWISE_ADAM).
///
///   m = b1 m + (1 - b1) g
///   v = b2 v + (1 - b2) (mean of g^2 over the row)
///   w -= lr (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + eps) + weight_decay w)
///
/// The stored v is at most the largest finite number; a step uses the v that it computed.
struct partial_rowwise_adam {
  static constexpr std::string_view name = "partial_rowwise_adam";  ///< see ferry::Optimizer
  static constexpr int min_fields = 1;                              ///< see ferry::Optimizer

  double lr = 1e-3;                  ///< learning rate, >= 0
  decay_rates betas = {0.9, 0.999};  ///< decay rates of m and v, each in [0, 1)
  double eps = 1e-8;                 ///< added to the denominator, >= 0
  double weight_decay = 0.0;         ///< >= 0: added to the direction as weight_decay * w
  bool maximize = false;             ///< true to ascend instead of descend

  friend bool operator==(const partial_rowwise_adam&, const partial_rowwise_adam&) = default;

  template <class Compute>
  using terms = correction_terms<Compute, Compute>;  ///< see ferry::ScheduledOptimizer

  template <class Compute>
  struct update {
    static constexpr int sums = 1;
    static constexpr bool sums_squares = true;

    Compute lr, beta1, beta2, fresh1, fresh2, correction1, correction2, eps, weight_decay, sign;

    /// The number of one element whose square is in the sum of the row.
    KOKKOS_FUNCTION void measure(Compute, Compute gradient, const auto&, const auto&,
                                 Compute (&part)[sums]) const {
      part[0] = gradient;
    }
    /// The second moment of the row, and the denominator of its elements.
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute width,
                                       auto& row) const {
      const auto moment = add_to_moment(row[0], beta2 * row[0], fresh2 * (total[0] / width), unit[0]);
      total[0] = moment.root_over(correction2) + eps;
    }
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, auto& state,
                               const Compute (&total)[sums]) const {
      state[0] = beta1 * state[0] + fresh1 * (sign * gradient);
      weight -= lr * decayed(state[0] / correction1 / total[0], weight_decay, weight);
    }
    KOKKOS_FUNCTION void set_step(const auto& rate, const terms<Compute>& step) {
      lr = narrowed<Compute>(rate);
      correction1 = step.correction1;
      correction2 = step.correction2;
    }
  };

  /// Members of ferry::Optimizer and ferry::ScheduledOptimizer.
  /// @{
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"exp_avg"}, row_field{"exp_avg_sq"});
  }
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] scheduled_update<update<Compute>, Wide> options() const {
    return {make_update<update, Compute>(0.0, betas[0], betas[1], 1.0 - betas[0], 1.0 - betas[1], 1.0, 1.0,
                                         eps, weight_decay, maximize ? -1.0 : 1.0),
            Wide(lr)};
  }
  template <class Compute>
  [[nodiscard]] auto coefficients(std::int64_t step) const {
    return update_at<Compute>(*this, step);
  }
  [[nodiscard]] auto ranges() const { return adam_options(*this); }
  void check() const { require_options(name, ranges()); }
  /// @}
};

}  // namespace ferry::optim
