#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/decay.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/require_option.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::optim {

/// torch.optim.RMSprop (Tieleman and Hinton 2012; centered: Graves 2013): g += weight_decay w;
/// s = alpha s + (1 - alpha) g^2; with centered a += (1 - alpha) (g - a) and s - a^2 in the place of s;
/// d = g / (sqrt(s) + eps); with momentum b = momentum b + d and w -= lr b, else w -= lr d.
struct rmsprop {
  static constexpr std::string_view name = "rmsprop";
  static constexpr int min_fields = 1;

  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
  bool maximize = false;

  friend bool operator==(const rmsprop&, const rmsprop&) = default;

  template <class Compute>
  struct update {
    Compute lr, alpha, fresh, eps, weight_decay, momentum, sign;
    bool centered;

    friend bool operator==(const update&, const update&) = default;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      const Compute g = decayed(sign * gradient, weight_decay, weight);
      state[0] = alpha * state[0] + fresh * g * g;
      Compute square = state[0];
      // Two fields: the one that the options ask for; three: both.
      if constexpr (N > 1)
        if (centered) {
          Compute& average = state[N - 1];
          average += fresh * (g - average);
          square -= average * average;
        }
      Compute direction = g / (Kokkos::sqrt(square) + eps);
      if constexpr (N > 1)
        if (N > 2 || !centered) {
          state[1] = momentum * state[1] + direction;
          direction = state[1];
        }
      weight -= lr * direction;
    }
    /// Without a gradient only the averages fall off, but for momentum, which goes on moving the weight.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&)[N]) const {
      return weight_decay == Compute(0) && momentum == Compute(0);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      state[0] *= decay_over(alpha, steps);
      if constexpr (N > 1)
        if (centered) state[N - 1] *= decay_over(Compute(1) - fresh, steps);
    }
  };

  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"square_avg"}, field{"momentum_buffer", 0.0, momentum != 0.0},
                                   field{"grad_avg", 0.0, centered});
  }

  /// `step` counts from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr),
            static_cast<Compute>(alpha),
            static_cast<Compute>(1.0 - alpha),
            static_cast<Compute>(eps),
            static_cast<Compute>(weight_decay),
            static_cast<Compute>(momentum),
            static_cast<Compute>(maximize ? -1.0 : 1.0),
            centered};
  }

  void check() const {
    require_not_negative(name, "lr", lr);
    require_not_negative(name, "alpha", alpha);
    require_not_negative(name, "eps", eps);
    require_not_negative(name, "weight_decay", weight_decay);
    require_not_negative(name, "momentum", momentum);
  }
};
static_assert(Optimizer<rmsprop>);

}  // namespace ferry::optim
