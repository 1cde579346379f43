// SPDX-License-Identifier: Apache-2.0
// Nothing would ever read or write the field.
// expected-error: a row_field is for rules that look at the row as a whole
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

struct own {
  static constexpr std::string_view name = "own";
  static constexpr int min_fields = 0;

  double lr = 1e-3;

  template <class Compute>
  struct update {
    Compute lr;
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[N]) const {
      weight -= lr * gradient;
    }
  };
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(ferry::optim::field{"count"}); }
#else
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(ferry::optim::row_field{"count"}); }
#endif
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
