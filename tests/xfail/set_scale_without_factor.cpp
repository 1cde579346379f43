// SPDX-License-Identifier: Apache-2.0
// Microscaling has no factor for the table.
// expected-error: numbers of this quantization have no factor for the table
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::quantized_tensor<ferry::quantization::nvfp4, ferry::mapped_space> table("table", 10, 32);
#else
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#endif
  table.set_scale(2.0f);
}
