// SPDX-License-Identifier: Apache-2.0
// A row that is replaced has nothing to add to.
// expected-error: duplicates::sum_any_order adds to rows where they lie
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::rowwise_int8_tensor<ferry::device_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, batch, ferry::duplicates::sum{}).wait();
#else
  ferry::scatter(exec, table, indices, batch, ferry::duplicates::sum_any_order{}).wait();
#endif
}
