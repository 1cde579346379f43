// SPDX-License-Identifier: Apache-2.0
// Values of 8 bits are not added.
// expected-error: duplicates::sum and duplicates::mean need elements that are numbers
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes("codes", 10, 4);
  ferry::tensor<ferry::fp8_e4m3_t, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, codes, indices, batch, ferry::duplicates::last{}).wait();
#else
  ferry::scatter(exec, codes, indices, batch, ferry::duplicates::sum{}).wait();
#endif
}
