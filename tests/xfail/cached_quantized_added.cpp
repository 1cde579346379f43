// SPDX-License-Identifier: Apache-2.0
// A quantized row is replaced or trained as a whole.
// expected-error: scatter_add adds to rows of numbers
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
  ferry::cached_table hot(table, ferry::cache::first{2});
  ferry::tensor<float, ferry::device_space> rows("rows", 1, 32);
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, hot, std::vector{1}, rows).wait();
#else
  ferry::scatter_add(exec, hot, std::vector{1}, rows).wait();
#endif
}
