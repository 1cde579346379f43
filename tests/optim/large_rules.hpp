// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

#include <boost/hana/tuple.hpp>

/// Rules of one's own with many options, or many arrays of state.
namespace ferry_test {

/// w -= options[0] g + options[1] g^2 + ...
template <int Options>
struct polynomial_rule {
  static constexpr std::string_view name = "polynomial_rule";
  static constexpr int min_fields = 0;

  std::array<double, Options> options = [] {
    std::array<double, Options> list{};
    for (int k = 0; k < Options; ++k) list[static_cast<std::size_t>(k)] = 0.01 * (k % 5 - 1.5) / (1 + k);
    return list;
  }();

  template <class Compute>
  struct update {
    Compute options[Options];

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[N]) const {
      Compute sum = Compute(0);
      for (int k = Options - 1; k >= 0; --k) sum = gradient * (sum + options[k]);
      weight -= sum;
    }
  };

  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    update<Compute> result{};
    for (int k = 0; k < Options; ++k)
      result.options[k] = static_cast<Compute>(options[static_cast<std::size_t>(k)]);
    return result;
  }
  void check() const {}

  /// One step of a row by a plain loop.
  void follow(std::vector<double>&, double* weights, const std::vector<double>& gradient) const {
    for (std::size_t c = 0; c < gradient.size(); ++c) {
      double sum = 0.0;
      for (int k = Options - 1; k >= 0; --k) sum = gradient[c] * (sum + options[static_cast<std::size_t>(k)]);
      weights[c] -= sum;
    }
  }
};

/// By rows: averages of g / |g|, with decays of their own, all of which move the weight; then a polynomial in
/// g.
template <int Fields, int Options>
struct averages_rule {
  static constexpr std::string_view name = "averages_rule";
  static constexpr int min_fields = Fields;

  polynomial_rule<Options> polynomial;

  static double decay(int field) { return 0.5 + 0.05 * field; }

  template <class Compute>
  struct update {
    static constexpr int sums = 1;
    typename polynomial_rule<Options>::template update<Compute> polynomial;
    Compute decays[Fields];

    template <int N, int R>
    KOKKOS_FUNCTION void measure(Compute, Compute gradient, const Compute (&)[N], const Compute (&)[R],
                                 Compute (&part)[sums]) const {
      part[0] = gradient * gradient;
    }
    template <int R>
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], Compute, Compute (&)[R]) const {
      total[0] = Compute(1) / (Kokkos::sqrt(total[0]) + Compute(1));
    }
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N],
                               const Compute (&total)[sums]) const {
      const Compute toward = gradient * total[0];
      for (int f = 0; f < N; ++f) {
        state[f] = decays[f] * state[f] + (Compute(1) - decays[f]) * toward;
        weight -= state[f] * decays[f];
      }
      polynomial.apply(weight, gradient, state);
    }
  };

  [[nodiscard]] auto fields() const { return fields(std::make_integer_sequence<int, Fields>{}); }
  template <int... F>
  [[nodiscard]] auto fields(std::integer_sequence<int, F...>) const {
    constexpr std::array<const char*, 8> names{"a", "b", "c", "d", "e", "f", "g", "h"};
    return boost::hana::make_tuple(ferry::optim::field{names[F]}...);
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    update<Compute> result{polynomial.template coefficients<Compute>(step), {}};
    for (int f = 0; f < Fields; ++f) result.decays[f] = static_cast<Compute>(decay(f));
    return result;
  }
  void check() const {}

  /// `state` is that of the row, field after field.
  void follow(std::vector<double>& state, double* weights, const std::vector<double>& gradient) const {
    const std::size_t width = gradient.size();
    state.resize(Fields * width);
    double squares = 0.0;
    for (const double g : gradient) squares += g * g;
    const double factor = 1.0 / (std::sqrt(squares) + 1.0);
    for (std::size_t c = 0; c < width; ++c)
      for (int f = 0; f < Fields; ++f) {
        double& average = state[static_cast<std::size_t>(f) * width + c];
        average = decay(f) * average + (1.0 - decay(f)) * gradient[c] * factor;
        weights[c] -= average * decay(f);
      }
    polynomial.follow(state, weights, gradient);
  }
};

static_assert(ferry::Optimizer<polynomial_rule<20>>);
static_assert(ferry::RowOptimizer<averages_rule<6, 1>>);

}  // namespace ferry_test
