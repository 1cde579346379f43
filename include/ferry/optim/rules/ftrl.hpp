#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/sign_of.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::optim {

/// FTRL-Proximal (McMahan et al. 2013, algorithm 1), per coordinate: s = (sqrt(n + g^2) - sqrt(n)) / alpha;
/// z += g - s w; n += g^2; w = 0 where |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2), with alpha = lr.
/// The paper's weights start at zero; those that start elsewhere move there with their first gradient, since z starts at
/// zero.
struct ftrl {
  static constexpr std::string_view name = "ftrl";
  static constexpr int min_fields = 2;

  double lr = 1e-1;
  double beta = 1.0;
  double l1 = 0.0;
  double l2 = 0.0;
  double initial_accumulator_value = 0.0;
  bool maximize = false;

  friend bool operator==(const ftrl&, const ftrl&) = default;

  template <class Compute>
  struct update {
    Compute inverse_lr, beta, l1, l2, sign;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      const Compute g = sign * gradient;
      const Compute before = Kokkos::sqrt(state[0]);
      state[0] += g * g;
      const Compute root = Kokkos::sqrt(state[0]);
      state[1] += g - (root - before) * inverse_lr * weight;
      const Compute z = state[1];
      Compute within = z > l1 ? l1 : z;
      within = within < -l1 ? -l1 : within;
      const Compute divisor = (beta + root) * inverse_lr + l2;
      // Zero where no gradient ever came and neither beta nor l2 are: there is nothing to divide, so one will do.
      weight = (within - z) / (divisor + (Compute(1) - sign_of(divisor)));
    }
  };

  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value}, field{"linear"});
  }

  /// `step` counts from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(1.0 / lr), static_cast<Compute>(beta), static_cast<Compute>(l1),
            static_cast<Compute>(l2), static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  void check() const {
    require_option(name, "lr", lr, lr > 0.0, "> 0");
    require_not_negative(name, "beta", beta);
    require_not_negative(name, "l1", l1);
    require_not_negative(name, "l2", l2);
    require_not_negative(name, "initial_accumulator_value", initial_accumulator_value);
  }
};
static_assert(Optimizer<ftrl>);

}  // namespace ferry::optim
