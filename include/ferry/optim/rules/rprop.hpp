// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>

namespace ferry::optim {

/// torch.optim.Rprop (Riedmiller and Braun 1993): w -= sign(g) size, with a step size of its own for every
/// element. The size grows by the factor etas[1], up to step_sizes[1], while the gradient keeps its sign. It
/// shrinks by etas[0], down to step_sizes[0], when the sign changes; the gradient is then taken as zero once.
/// The first gradient of a row leaves the size unchanged.
struct rprop {
  static constexpr std::string_view name = "rprop";  ///< see ferry::Optimizer
  static constexpr int min_fields = 2;               ///< see ferry::Optimizer

  double lr = 1e-2;                         ///< first step size of every element, >= 0
  std::array<double, 2> etas = {0.5, 1.2};  ///< factors that shrink and grow a step size: in (0, 1), > 1
  std::array<double, 2> step_sizes = {1e-6, 50.0};  ///< least and largest step size, >= 0 and in order
  bool maximize = false;                            ///< true to ascend instead of descend

  friend bool operator==(const rprop&, const rprop&) = default;

  /// The update of one step, for kernels.
  template <class Compute>
  struct update {
    /// Coefficients and functions as in ferry::Optimizer.
    /// @{
    static constexpr bool by_lanes = true;

    Compute shrink, grow, least, most, sign;

    template <int N, class Number>
    KOKKOS_FORCEINLINE_FUNCTION void apply(Number& weight, std::type_identity_t<Number> gradient,
                                           Number (&state)[N]) const {
      const Number g = sign * gradient;
      const Number turn = sign_of(g * state[0]);
      // Each is 0 or 1. Products with them are exact and replace branches, see sign_of.
      const Number goes_on = Number(Compute(0.5f)) * (turn * turn + turn);
      const Number turned = Number(Compute(0.5f)) * (turn * turn - turn);
      Number size = state[1] * (goes_on * grow + turned * shrink + (Number(Compute(1)) - turn * turn));
      size = either(size < Number(least), Number(least), size);
      size = either(size > Number(most), Number(most), size);
      weight -= size * (sign_of(g) * (Number(Compute(1)) - turned));
      state[0] = either(turned > Number(Compute(0)), Number(Compute(0)), g);
      state[1] = size;
    }
    /// Without a gradient nothing changes once the stored gradient is zero.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute, const Compute (&state)[N]) const {
      return state[0] == Compute(0) && state[1] >= least && state[1] <= most;
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&)[N], std::int64_t) const {}
    /// @}
  };

  /// Members of ferry::Optimizer.
  /// @{
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"prev"}, field{"step_size", lr}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return make_update<update, Compute>(etas[0], etas[1], step_sizes[0], step_sizes[1],
                                        maximize ? -1.0 : 1.0);
  }
  [[nodiscard]] auto ranges() const {
    return std::array{
        not_negative("lr", lr, float_range::any),
        option_range{"etas[0]", etas[0], etas[0] > 0.0 && etas[0] < 1.0, "in (0, 1)"},
        option_range{"etas[1]", etas[1], etas[1] > 1.0, "> 1"}, not_negative("step_sizes[0]", step_sizes[0]),
        option_range{"step_sizes[1]", step_sizes[1], step_sizes[1] >= step_sizes[0], ">= step_sizes[0]"}};
  }
  void check() const { require_options(name, ranges()); }
  void check_in_float() const { require_options_in_float(name, ranges()); }
  /// @}
};
static_assert(Optimizer<rprop>);

}  // namespace ferry::optim
