// SPDX-License-Identifier: Apache-2.0
// Rows are counted.
// expected-errors: 1 the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const std::vector<float> places{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
#else
  ferry::gather(exec, table, places, batch).wait();
#endif
}
