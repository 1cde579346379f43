// SPDX-License-Identifier: Apache-2.0
// A table with one factor has no array of scales.
// expected-error: blocks of this quantization have no scales
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::quantized_tensor<ferry::quantization::nvfp4, ferry::mapped_space> table("table", 10, 32);
#else
  ferry::quantized_tensor<ferry::quantization::e4m3, ferry::mapped_space> table("table", 10, 32);
#endif
  static_cast<void>(table.scales());
}
