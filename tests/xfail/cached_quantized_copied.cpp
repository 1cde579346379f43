// SPDX-License-Identifier: Apache-2.0
// Codes alone are not the table.
// expected-error: verbs on whole tables take no cached_table before codes and scales
#include <ferry/cache.hpp>
#include <ferry/cache/copy.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
  const ferry::cached_table hot(table, ferry::cache::first{2});
#ifdef FERRY_XFAIL_FIXED
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> twin("twin", 10, 32);
  ferry::copy(exec, table, twin).wait();
#else
  ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> twin("twin", 10, 32);
  ferry::copy(exec, hot, twin).wait();
#endif
}
