#pragma once

#include <ferry/concepts/optimizer.hpp>
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

/// torch.optim.NAdam (Dozat 2016): Adam with Nesterov's momentum. mu(t) = b1 (1 - 0.96^(t momentum_decay) / 2);
/// m += (1 - b1) (g - m); v = b2 v + (1 - b2) g^2; with P the product of mu(1) ... mu(step):
/// w -= lr ((1 - mu(step)) / (1 - P) g + mu(step + 1) / (1 - P mu(step + 1)) m) / (sqrt(v / (1 - b2^step)) + eps).
/// weight_decay is added to the gradient, or with decoupled_weight_decay taken from the weight: w *= 1 - lr weight_decay.
struct nadam {
  static constexpr std::string_view name = "nadam";
  static constexpr int min_fields = 2;

  double lr = 2e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  bool maximize = false;

  friend bool operator==(const nadam&, const nadam&) = default;

  template <class Compute>
  struct update {
    Compute from_gradient, from_average, fresh1, beta2, fresh2, correction2, eps, weight_decay, keep, sign;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      weight *= keep;
      const Compute g = decayed(sign * gradient, weight_decay, weight);
      state[0] += fresh1 * (g - state[0]);
      state[1] = beta2 * state[1] + fresh2 * g * g;
      const Compute root = Kokkos::sqrt(state[1] / correction2) + eps;
      weight -= from_gradient * (g / root);
      weight -= from_average * (state[0] / root);
    }
    /// As optim::adam's; the momenta change too slowly to matter.
    template <int N>
    KOKKOS_FUNCTION bool at_rest(Compute weight, const Compute (&state)[N]) const {
      const Compute beta1 = Compute(1) - fresh1;
      if (keep != Compute(1) || weight_decay != Compute(0) || beta1 * beta1 > beta2) return false;
      return rounds_away(from_average * (state[0] / (Kokkos::sqrt(state[1] / correction2) + eps)), weight);
    }
    template <int N>
    KOKKOS_FUNCTION void decay_state(Compute (&state)[N], std::int64_t steps) const {
      state[0] *= decay_over(Compute(1) - fresh1, steps);
      state[1] *= decay_over(beta2, steps);
    }
  };

  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"exp_avg"}, field{"exp_avg_sq"}); }

  /// What an update has of the step alone.
  template <class Compute>
  struct terms {
    double share, room, next, room_of_next;
    Compute correction2;

    friend bool operator==(const terms&, const terms&) = default;
  };
  struct momenta {
    std::array<double, 2> betas;
    double momentum_decay;

    friend bool operator==(const momenta&, const momenta&) = default;

    /// `step` counts from 1.
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      const double next = momentum_at(step + 1);
      const double product = until(step);
      return {1.0 - momentum_at(step), 1.0 - product, next, 1.0 - product * next,
              static_cast<Compute>(1.0 - std::pow(betas[1], static_cast<double>(step)))};
    }

   private:
    [[nodiscard]] double momentum_at(std::int64_t t) const {
      return betas[0] * (1.0 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay));
    }
    /// The product of the momenta of steps 1 to `step`; where it is too small to change 1 - P it is as good as zero.
    [[nodiscard]] double until(std::int64_t step) const {
      double product = 1.0;
      for (std::int64_t t = 1; t <= step && product > 1e-20; ++t) product *= momentum_at(t);
      return product;
    }
  };
  /// See ScheduledOptimizer.
  template <class Compute, class Wide>
  struct options_of {
    update<Compute> fixed;
    Wide lr;

    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& by) const {
      update<Compute> made = fixed;
      made.from_gradient = narrowed<Compute>(lr * by.share / by.room);
      made.from_average = narrowed<Compute>(lr * by.next / by.room_of_next);
      made.correction2 = by.correction2;
      return made;
    }
  };
  [[nodiscard]] momenta by_step() const { return {betas, momentum_decay}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {{static_cast<Compute>(0.0), static_cast<Compute>(0.0), static_cast<Compute>(1.0 - betas[0]),
             static_cast<Compute>(betas[1]), static_cast<Compute>(1.0 - betas[1]), static_cast<Compute>(1.0),
             static_cast<Compute>(eps), static_cast<Compute>(decoupled_weight_decay ? 0.0 : weight_decay),
             static_cast<Compute>(decoupled_weight_decay ? 1.0 - lr * weight_decay : 1.0),
             static_cast<Compute>(maximize ? -1.0 : 1.0)},
            Wide(lr)};
  }

  /// `step` counts from 1. The powers are taken in double on the host.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  void check() const {
    require_adam_options(*this);
    require_not_negative(name, "momentum_decay", momentum_decay);
  }
};
static_assert(ScheduledOptimizer<nadam>);

}  // namespace ferry::optim
