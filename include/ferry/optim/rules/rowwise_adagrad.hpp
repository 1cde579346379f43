// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

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

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::RowOptimizer.
    /// @{
    static constexpr int sums = 1;
    static constexpr bool sums_squares = true;

    Compute lr, weight_decay, eps, sign;

    /// The number of one element whose square is in the sum of the row.
    template <int N, int R>
    KOKKOS_FUNCTION void measure(Compute weight, Compute gradient, const Compute (&)[N], const Compute (&)[R],
                                 Compute (&part)[sums]) const {
      part[0] = decayed(sign * gradient, weight_decay, weight);
    }
    /// The accumulator of the row, and the step size of its elements.
    template <int R>
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute width,
                                       Compute (&row)[R]) const {
      const auto moment = add_to_moment(row[0], row[0], total[0] / width, unit[0]);
      total[0] = lr / (Kokkos::sqrt(moment.value) * moment.unit + eps);
    }
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[N],
                               const Compute (&total)[sums]) const {
      weight -= total[0] * decayed(sign * gradient, weight_decay, weight);
    }
    /// @}
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
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(RowOptimizer<rowwise_adagrad>);

}  // namespace ferry::optim
