// SPDX-License-Identifier: Apache-2.0
// Its apply takes the state of two fields, but the rule has one.
// expected-error: the update of an optimizer rule needs a const member apply\(weight, gradient, state\)
// most-lines: 60
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string_view>

struct own {
  static constexpr std::string_view name = "own";
  static constexpr int min_fields = 1;

  double lr = 1e-3;

  template <class Compute>
  struct update {
    Compute lr;

#ifdef FERRY_XFAIL_FIXED
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[1]) const {
      weight -= lr * gradient;
    }
#else
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[2]) const {
      weight -= lr * gradient;
    }
#endif
  };
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(ferry::optim::field{"buffer"}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr)};
  }
  void check() const {}
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  static_cast<void>(ferry::optim::make_state(own{}, table));
}
