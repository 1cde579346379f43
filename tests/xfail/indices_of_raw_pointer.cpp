// SPDX-License-Identifier: Apache-2.0
// A pointer does not say how many.
// expected-errors: 1 the indices must be a row_plan, or a rank-1 array .* give ferry::tensor_view\(pointer, count\)
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, ferry::tensor_view(indices.data(), 2), batch).wait();
#else
  ferry::scatter(exec, table, indices.data(), batch).wait();
#endif
}
