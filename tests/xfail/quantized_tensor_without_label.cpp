// SPDX-License-Identifier: Apache-2.0
// The label comes first.
// expected-error: the first argument of a quantized_tensor is its label
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#else
  const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table(10, 32);
#endif
}
