// SPDX-License-Identifier: Apache-2.0
// Where the two ends meet a row may be written twice, which must not add twice.
// expected-error: path::cooperative serves gather and scatter only
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::pinned_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter_add(exec, table, indices, batch, ferry::path::ordered{}).wait();
#else
  ferry::scatter_add(exec, table, indices, batch, ferry::path::cooperative{}).wait();
#endif
}
