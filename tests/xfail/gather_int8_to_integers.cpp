// SPDX-License-Identifier: Apache-2.0
// 8-bit rows stand for numbers with a fraction.
// expected-error: quantized rows are converted from and to float, double, half_t and bhalf_t only
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
#else
  ferry::tensor<std::int32_t, ferry::device_space> batch("batch", 2, 4);
#endif
  static_cast<void>(ferry::gather(exec, table, indices, batch));
}
