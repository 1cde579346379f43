// SPDX-License-Identifier: Apache-2.0
// The label comes first.
// expected-error: the arguments of a quantized_tensor are its label, its rows and its width
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
