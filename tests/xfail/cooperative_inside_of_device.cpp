// SPDX-License-Identifier: Apache-2.0
// The host has no share in rows that it can't reach.
// expected-error: path::cooperative lets device and host share the rows of a table in host memory
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::pinned_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> far("far", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::path::cooperative{}).wait();
#else
  ferry::gather(exec, far, indices, batch, ferry::path::cooperative{}).wait();
#endif
}
