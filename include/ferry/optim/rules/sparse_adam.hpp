#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/bias_corrections.hpp>
#include <ferry/optim/detail/decay.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/require_option.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace ferry::optim {

/// torch.optim.SparseAdam, the lazy Adam that TensorFlow's embeddings use as well: m += (1 - b1) (g - m);
/// v += (1 - b2) (g^2 - v); w -= lr sqrt(1 - b2^step) / (1 - b1^step) m / (sqrt(v) + eps). adam has eps inside of the
/// bias correction instead.
struct sparse_adam {
  static constexpr std::string_view name = "sparse_adam";
  static constexpr int min_fields = 2;

  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool maximize = false;

  friend bool operator==(const sparse_adam&, const sparse_adam&) = default;

  template <class Compute>
  struct update {
    Compute step_size, fresh1, fresh2, eps, sign;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      const Compute g = sign * gradient;
      state[0] += fresh1 * (g - state[0]);
      state[1] += fresh2 * (g * g - state[1]);
      weight -= step_size * (state[0] / (Kokkos::sqrt(state[1]) + eps));
    }
    /// As optim::adam's.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      const Compute beta1 = Compute(1) - fresh1;
      if (beta1 * beta1 > Compute(1) - fresh2) return false;
      return rounds_away(step_size * (state[0] / (Kokkos::sqrt(state[1]) + eps)), weight);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      state[0] *= decay_over(Compute(1) - fresh1, steps);
      state[1] *= decay_over(Compute(1) - fresh2, steps);
    }
  };

  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"}); }

  /// What an update has of the step alone.
  template <class Compute>
  struct terms {
    double correction1, root_correction2;

    friend bool operator==(const terms&, const terms&) = default;
    static terms of(double correction1, double correction2) { return {correction1, std::sqrt(correction2)}; }
  };
  /// See ScheduledOptimizer.
  template <class Compute, class Wide>
  struct options_of {
    update<Compute> fixed;
    Wide lr;

    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& by) const {
      update<Compute> made = fixed;
      made.step_size = narrowed<Compute>(lr * by.root_correction2 / by.correction1);
      return made;
    }
  };
  [[nodiscard]] bias_corrections<terms> by_step() const { return {betas}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {{static_cast<Compute>(0.0), static_cast<Compute>(1.0 - betas[0]),
             static_cast<Compute>(1.0 - betas[1]), static_cast<Compute>(eps),
             static_cast<Compute>(maximize ? -1.0 : 1.0)},
            Wide(lr)};
  }

  /// `step` counts from 1. The powers are taken in double on the host.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  void check() const { require_adam_options(*this); }
};
static_assert(ScheduledOptimizer<sparse_adam>);

}  // namespace ferry::optim
