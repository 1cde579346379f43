// SPDX-License-Identifier: Apache-2.0
// Codes stand for numbers with a fraction.
// expected-first-error: quantized rows are converted from and to float, double, half_t and bhalf_t only
// most-lines: 20
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 32);
#else
  ferry::tensor<std::int32_t, ferry::device_space> batch("batch", 2, 32);
#endif
  ferry::gather(exec, table, indices, batch).wait();
}
