// SPDX-License-Identifier: Apache-2.0
// Codes have no sums.
// expected-first-error: must be an array of numbers, not a table of quantized rows
// most-lines: 20
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
  const ferry::tensor<float, ferry::mapped_space> batch("batch", 2, 32);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, batch).wait();
#else
  ferry::scatter_add(exec, table, indices, batch).wait();
#endif
}
