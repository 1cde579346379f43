// SPDX-License-Identifier: Apache-2.0
// An array of pointers to rows is no array of rows.
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\)
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  float** rows = nullptr;
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter_add(exec, table, indices, batch).wait();
#else
  ferry::scatter_add(exec, rows, indices, batch).wait();
#endif
}
