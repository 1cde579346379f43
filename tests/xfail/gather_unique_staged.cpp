// SPDX-License-Identifier: Apache-2.0
// Each row is read by kernels.
// expected-error: so it takes no path policy
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_unique(exec, table, indices, batch).wait();
#else
  ferry::gather_unique(exec, table, indices, batch, ferry::path::staged{}).wait();
#endif
}
