// SPDX-License-Identifier: Apache-2.0
// Its update has sums that nothing turns into what apply needs.
// expected-error: an update with a constant `sums` looks at the row as a whole, so it needs const members measure, finalize_sums and apply
// most-lines: 60
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string_view>

struct own {
  static constexpr std::string_view name = "own";
  static constexpr int min_fields = 0;

  double lr = 1e-3;

  template <class Compute>
  struct update {
    static constexpr int sums = 1;

    Compute lr;

    template <int N, int R>
    KOKKOS_FUNCTION void measure(Compute, Compute gradient, const Compute (&)[N], const Compute (&)[R],
                                 Compute (&part)[sums]) const {
      part[0] = gradient * gradient;
    }
#ifdef FERRY_XFAIL_FIXED
    template <int R>
    KOKKOS_FUNCTION void finalize_sums(Compute (&total)[sums], Compute, Compute (&)[R]) const {
      total[0] = lr / (Compute(1) + total[0]);
    }
#endif
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&)[N],
                               const Compute (&total)[sums]) const {
      weight -= total[0] * gradient;
    }
  };
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(ferry::optim::row_field{"steps"}); }
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
