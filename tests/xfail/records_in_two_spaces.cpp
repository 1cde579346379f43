// SPDX-License-Identifier: Apache-2.0
// A record lies in one memory space.
// expected-error: rows with their scales in records are those of quantization::rowwise_int8, whose table has one memory space
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused() {
  using ferry::quantization::rowwise_int8;
#ifdef FERRY_XFAIL_FIXED
  const ferry::quantized_tensor<rowwise_int8, ferry::mapped_space> table("table", 10, 32);
#else
  const ferry::quantized_tensor<rowwise_int8, ferry::mapped_space, ferry::device_space> table("table", 10,
                                                                                              32);
#endif
}
