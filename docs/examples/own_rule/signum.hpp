// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <cstdint>
#include <string_view>

namespace own {

/// Signum (Bernstein et al. 2018, algorithm 1): b = momentum b + (1 - momentum) g; w -= lr sign(b).
struct signum {
  static constexpr std::string_view name = "signum";
  static constexpr int min_fields = 1;

  double lr = 1e-3;
  double momentum = 0.9;

  /// One step, compiled for the type that it computes in. Copied to the device by value: plain numbers only.
  template <class Compute>
  struct update {
    Compute lr, momentum;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      state[0] = momentum * state[0] + (Compute(1) - momentum) * gradient;
      if (state[0] > Compute(0)) weight -= lr;
      if (state[0] < Compute(0)) weight += lr;
    }
  };

  /// The state of each element, by name and initial value.
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(ferry::optim::field{"momentum_buffer"});
  }
  /// Numbers that depend on the step (the first one is 1) are computed here, once, in double, on the host.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr), static_cast<Compute>(momentum)};
  }
  void check() const {
    ferry::optim::require_not_negative(name, "lr", lr);
    ferry::optim::require_rate(name, "momentum", momentum);
  }
};
static_assert(ferry::Optimizer<signum>);

}  // namespace own
