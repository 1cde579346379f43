// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

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

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::RowOptimizer.
    /// @{
    static constexpr int sums = 2;
    static constexpr bool sums_squares = true;

    Compute lr, momentum, weight_decay, trust_coefficient, eps, sign;

    /// The numbers of one element whose squares are in the sums of the row.
    template <int N, int R>
    KOKKOS_FUNCTION void measure(Compute weight, Compute gradient, const Compute (&)[N], const Compute (&)[R],
                                 Compute (&part)[sums]) const {
      part[0] = weight;
      part[1] = gradient;
    }
    /// The step size of the row, from its sums.
    template <int R>
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute,
                                       Compute (&)[R]) const {
      const bool scales = total[0] > Compute(0) && total[1] > Compute(0);
      // The ratio of the norms is finite if both are divided by the larger unit, which is 1 or more.
      const Compute larger = unit[0] > unit[1] ? unit[0] : unit[1];
      const Compute inverse = larger > Compute(1) ? inverse_unit(larger) : Compute(1);
      const Compute weights = Kokkos::sqrt(total[0]) * (unit[0] * inverse);
      const Compute gradients = Kokkos::sqrt(total[1]) * (unit[1] * inverse);
      const Compute rate = trust_coefficient * weights / (gradients + weight_decay * weights + eps * inverse);
      total[0] = scales ? lr * saturated(rate, weights) : lr;
    }
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N],
                               const Compute (&total)[sums]) const {
      state[0] = momentum * state[0] + total[0] * decayed(sign * gradient, weight_decay, weight);
      weight -= state[0];
    }
    /// @}
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
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(RowOptimizer<lars>);

}  // namespace ferry::optim
