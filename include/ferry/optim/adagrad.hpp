#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/field.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::optim {

/// torch.optim.Adagrad (Duchi et al. 2011): g += weight_decay w; s += g^2;
/// w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps).
struct adagrad {
  static constexpr std::string_view name = "adagrad";
  static constexpr int min_fields = 1;

  double lr = 1e-2;
  double lr_decay = 0.0;
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;
  double eps = 1e-10;
  bool maximize = false;

  template <class Compute>
  struct update {
    Compute lr, weight_decay, eps, sign;

    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      const Compute g = sign * gradient + weight_decay * weight;
      state[0] += g * g;
      weight -= lr * (g / (Kokkos::sqrt(state[0]) + eps));
    }
  };

  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(field{"sum", initial_accumulator_value});
  }

  /// `step` counts from 1.
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    return {static_cast<Compute>(lr / (1.0 + static_cast<double>(step - 1) * lr_decay)),
            static_cast<Compute>(weight_decay), static_cast<Compute>(eps),
            static_cast<Compute>(maximize ? -1.0 : 1.0)};
  }

  void check() const {
    const auto need = [](const char* option, double value, bool holds) {
      if (!holds)
        throw invalid_argument(std::string("ferry::optim::adagrad: ") + option + " is " +
                               std::to_string(value) + ", must be >= 0");
    };
    need("lr", lr, lr >= 0.0);
    need("lr_decay", lr_decay, lr_decay >= 0.0);
    need("weight_decay", weight_decay, weight_decay >= 0.0);
    need("initial_accumulator_value", initial_accumulator_value, initial_accumulator_value >= 0.0);
    need("eps", eps, eps >= 0.0);
  }
};
static_assert(Optimizer<adagrad>);

}  // namespace ferry::optim
