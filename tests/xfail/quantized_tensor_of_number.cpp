// SPDX-License-Identifier: Apache-2.0
// A quantization says how numbers are encoded.
// expected-first-error: the template arguments of a quantized_tensor are a quantization
// most-lines: 20
#include <ferry/quantized.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 100, 32);
#else
  const ferry::quantized_tensor<float, ferry::mapped_space> table("table", 100, 32);
#endif
}
