// SPDX-License-Identifier: Apache-2.0
// Coefficients of a step are its update.
// expected-first-error: the verb needs an optimizer rule, ferry::optim::adam say; one of your own has the members
// most-lines: 20
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string_view>

struct own {
  static constexpr std::string_view name = "own";
  static constexpr int min_fields = 0;
  double lr = 1e-3;

  template <class Compute>
  struct update {
    Compute lr;

    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[1]) const {
      weight -= lr * gradient;
    }
  };
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(); }
  void check() const {}
#ifdef FERRY_XFAIL_FIXED
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr)};
  }
#endif
};

void refused(const ferry::tensor<float, ferry::mapped_space>& table) {
  static_cast<void>(ferry::optim::make_state(own{}, table));
}
