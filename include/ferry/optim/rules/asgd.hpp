#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/decay.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/require_option.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace ferry::optim {

/// torch.optim.ASGD (Polyak and Juditsky 1992): g += weight_decay w; w = (1 - lambd eta) w - eta g;
/// ax += mu (w - ax), the average that is used in the end. eta(1) = lr, eta(t) = lr / (1 + lambd lr (t - 1))^alpha,
/// mu(t) = 1 / max(1, t - 1 - t0). torch works eta out one step ahead, so that a new lr counts from the next step on; here
/// it counts at once.
struct asgd {
  static constexpr std::string_view name = "asgd";
  static constexpr int min_fields = 1;

  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;
  double weight_decay = 0.0;
  bool maximize = false;

  friend bool operator==(const asgd&, const asgd&) = default;

  template <class Compute>
  struct update {
    Compute eta, keep, mu, weight_decay, sign;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      const Compute g = decayed(sign * gradient, weight_decay, weight);
      weight = keep * weight - eta * g;
      state[0] = mu == Compute(1) ? weight : state[0] + mu * (weight - state[0]);
    }
  };

  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(field{"ax"}); }

  /// What an update has of the step alone.
  template <class Compute>
  struct terms {
    double done;
    Compute mu;

    friend bool operator==(const terms&, const terms&) = default;
  };
  struct averaging {
    double t0;

    friend bool operator==(const averaging&, const averaging&) = default;
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      const auto done = static_cast<double>(step - 1);
      return {done, static_cast<Compute>(1.0 / std::max(1.0, done - t0))};
    }
  };
  /// See ScheduledOptimizer.
  template <class Compute, class Wide>
  struct options_of {
    Wide lr, lambd;
    double alpha;
    Compute weight_decay, sign;

    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& by) const {
      const Wide base = Wide(1.0) + lambd * lr * by.done;
      const Wide eta = lr / power(static_cast<double>(base), alpha);
      return {narrowed<Compute>(eta), narrowed<Compute>(Wide(1.0) - lambd * eta), by.mu, weight_decay, sign};
    }
  };
  [[nodiscard]] averaging by_step() const { return {t0}; }
  template <class Compute, class Wide = double>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {Wide(lr), Wide(lambd), alpha, static_cast<Compute>(weight_decay),
            static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  /// `step` counts from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return options<Compute>().at(by_step().template at<Compute>(step));
  }

  void check() const {
    require_not_negative(name, "lr", lr);
    require_not_negative(name, "lambd", lambd);
    require_not_negative(name, "alpha", alpha);
    require_not_negative(name, "t0", t0);
    require_not_negative(name, "weight_decay", weight_decay);
  }
};
static_assert(ScheduledOptimizer<asgd>);

}  // namespace ferry::optim
