// SPDX-License-Identifier: Apache-2.0
// Its update uses more fields than it has.
// expected-error: min_fields of an optimizer rule must be from 0 to the number of fields that it has
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

struct own {
  static constexpr std::string_view name = "own";
#ifdef FERRY_XFAIL_FIXED
  static constexpr int min_fields = 1;
#else
  static constexpr int min_fields = 2;
#endif

  double lr = 1e-3;

  template <class Compute>
  struct update {
    Compute lr;
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[N]) const {
      weight -= lr * gradient;
    }
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
