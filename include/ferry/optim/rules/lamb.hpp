// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/rule.hpp>

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

  /// The part of an update that depends on the step alone, see ferry::ScheduledOptimizer.
  template <class Compute>
  using terms = correction_terms<Compute, Compute>;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::RowOptimizer.
    /// @{
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
    template <int N, int R>
    KOKKOS_FUNCTION void measure(Compute weight, Compute gradient, const Compute (&state)[N],
                                 const Compute (&)[R], Compute (&part)[sums]) const {
      Compute after[N];
      for (int f = 0; f < N; ++f) after[f] = state[f];
      part[0] = weight;
      part[1] = direction(weight, gradient, after);
    }
    /// The step size of the row, from its sums.
    template <int R>
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute,
                                       Compute (&)[R]) const {
      const bool scales = total[0] > Compute(0) && total[1] > Compute(0);
      const Compute ratio = Kokkos::sqrt(total[0]) / Kokkos::sqrt(total[1]) * unit[0] * inverse_unit(unit[1]);
      total[0] = scales ? lr * saturated(ratio, total[0]) : lr;
    }
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N],
                               const Compute (&total)[sums]) const {
      weight -= total[0] * direction(weight, gradient, state);
    }
    template <class Wide>
    KOKKOS_FUNCTION void set_step(const Wide& rate, const terms<Compute>& step) {
      lr = narrowed<Compute>(rate);
      correction1 = step.correction1;
      correction2 = step.correction2;
    }
    /// @}
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
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }
  void check() const { require_options(name, adam_options(*this)); }
  void check_in_float() const { require_options_in_float(name, adam_options(*this)); }
  /// @}
};
static_assert(RowOptimizer<lamb> && ScheduledOptimizer<lamb>);

}  // namespace ferry::optim
