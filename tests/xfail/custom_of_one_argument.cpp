// SPDX-License-Identifier: Apache-2.0
// The function gets row and column.
// expected-error: init::custom needs a function of \(row, column\)
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

struct of_row {
  KOKKOS_FUNCTION float operator()(std::int64_t row) const { return static_cast<float>(row); }
};
struct of_place {
  KOKKOS_FUNCTION float operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(row + column);
  }
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::init::custom(exec, table, of_place{});
#else
  ferry::init::custom(exec, table, of_row{});
#endif
}
