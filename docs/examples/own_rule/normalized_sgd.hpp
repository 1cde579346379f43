// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <cstdint>
#include <string_view>

namespace own {

/// Normalised gradient descent on rows (Hazan, Levy and Shalev-Shwartz 2015): w -= lr g / (|g| + eps), with the norm of
/// the row's gradient, and a count of the row's steps.
struct normalized_sgd {
  static constexpr std::string_view name = "normalized_sgd";
  static constexpr int min_fields = 0;

  double lr = 1e-1;
  double eps = 1e-12;

  template <class Compute>
  struct update {
    static constexpr int sums = 1;              ///< numbers whose squares are summed over the row
    static constexpr bool sums_squares = true;  ///< of elements whose squares may overflow

    Compute lr, eps;

    /// The number of one element whose square is added to the sum. Changes nothing.
    template <int N, int R>
    KOKKOS_FUNCTION void measure(Compute, Compute gradient, const Compute (&)[N], const Compute (&)[R],
                                 Compute (&part)[sums]) const {
      part[0] = gradient;
    }
    /// Once for each row: turns the sums into what its elements need, and updates the row's own state.
    template <int R>
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], const Compute (&unit)[sums], Compute,
                                       Compute (&row)[R]) const {
      total[0] = lr / (Kokkos::sqrt(total[0]) * unit[0] + eps);
      row[0] += Compute(1);
    }
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[N],
                               const Compute (&total)[sums]) const {
      weight -= total[0] * gradient;
    }
  };

  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(ferry::optim::row_field{"steps"}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr), static_cast<Compute>(eps)};
  }
  void check() const {
    ferry::optim::require_not_negative(name, "lr", lr);
    ferry::optim::require_option(name, "eps", eps, eps > 0.0, "> 0");
  }
};
static_assert(ferry::RowOptimizer<normalized_sgd>);

}  // namespace own
