// SPDX-License-Identifier: Apache-2.0
// Rates are numbers.
// expected-error: the factors of row_rates must be numbers
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  struct rate {
    float low, high;
  };
  ferry::tensor<float, ferry::mapped_space> factors("factors", 10);
  ferry::tensor<rate, ferry::mapped_space> ranges("ranges", 10);
#ifdef FERRY_XFAIL_FIXED
  [[maybe_unused]] const ferry::optim::row_rates transform{factors};
#else
  [[maybe_unused]] const ferry::optim::row_rates transform{ranges};
#endif
}
