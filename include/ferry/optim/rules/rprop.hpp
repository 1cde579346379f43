#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/detail/sign_of.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace ferry::optim {

/// torch.optim.Rprop (Riedmiller and Braun 1993): every element has a step size of its own, which grows by etas[1] while
/// its gradient keeps its sign, up to step_sizes[1], and shrinks by etas[0] when the sign changes, down to step_sizes[0];
/// then the gradient counts as zero once. w -= sign(g) step size. A row's first gradient has none to be compared with.
struct rprop {
  static constexpr std::string_view name = "rprop";
  static constexpr int min_fields = 2;

  double lr = 1e-2;
  std::array<double, 2> etas = {0.5, 1.2};
  std::array<double, 2> step_sizes = {1e-6, 50.0};
  bool maximize = false;

  friend bool operator==(const rprop&, const rprop&) = default;

  template <class Compute>
  struct update {
    Compute shrink, grow, least, most, sign;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      const Compute g = sign * gradient;
      const Compute turn = sign_of(g * state[0]);
      // 1 or 0 each: products by them are exact, and take the place of choices, see sign_of.
      const Compute goes_on = Compute(0.5f) * (turn * turn + turn);
      const Compute turned = Compute(0.5f) * (turn * turn - turn);
      Compute size = state[1] * (goes_on * grow + turned * shrink + (Compute(1) - turn * turn));
      size = size < least ? least : size;
      size = size > most ? most : size;
      weight -= size * (sign_of(g) * (Compute(1) - turned));
      state[0] = turned > Compute(0) ? Compute(0) : g;
      state[1] = size;
    }
    /// Without a gradient nothing changes, once the last one has been forgotten.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&state)[N]) const {
      return state[0] == Compute(0) && state[1] >= least && state[1] <= most;
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&)[N], std::int64_t) const {}
  };

  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"prev"}, field{"step_size", lr}); }

  /// `step` counts from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(etas[0]), static_cast<Compute>(etas[1]), static_cast<Compute>(step_sizes[0]),
            static_cast<Compute>(step_sizes[1]), static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  void check() const {
    require_not_negative(name, "lr", lr);
    require_option(name, "etas[0]", etas[0], etas[0] > 0.0 && etas[0] < 1.0, "in (0, 1)");
    require_option(name, "etas[1]", etas[1], etas[1] > 1.0, "> 1");
    require_not_negative(name, "step_sizes[0]", step_sizes[0]);
    require_option(name, "step_sizes[1]", step_sizes[1], step_sizes[1] >= step_sizes[0], ">= step_sizes[0]");
  }
};
static_assert(Optimizer<rprop>);

}  // namespace ferry::optim
