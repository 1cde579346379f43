// SPDX-License-Identifier: Apache-2.0
// Blocks divide the width.
// expected-first-error: the arguments of a quantized_tensor are its label, its rows and its width
// most-lines: 20
#include <ferry/quantized.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 100, 32);
#else
  const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 100);
#endif
}
