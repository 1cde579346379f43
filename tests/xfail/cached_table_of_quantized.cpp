// SPDX-License-Identifier: Apache-2.0
// A cache has rows of one array.
// expected-error: of quantized tables a rowwise_int8_tensor has a cached_table
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#ifdef FERRY_XFAIL_FIXED
  const ferry::cached_table codes(table.codes(), ferry::cache::first{.rows = 2});
  const ferry::cached_table scales(table.scales(), ferry::cache::first{.rows = 2});
#else
  const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
#endif
}
