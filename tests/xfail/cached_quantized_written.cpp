// SPDX-License-Identifier: Apache-2.0
// Quantized rows behind a cache are read.
// expected-error: verbs only read a quantized_tensor behind a cached_table
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
#else
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#endif
  ferry::cached_table hot(table, ferry::cache::first{2});
  ferry::tensor<float, ferry::device_space> rows("rows", 1, 32);
  ferry::scatter(exec, hot, std::vector{1}, rows).wait();
}
