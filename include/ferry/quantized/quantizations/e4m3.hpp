// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp8.hpp>

namespace ferry::quantization {

/// Numbers of the format E4M3 with one float for the table, as float8 checkpoints with `weight_scale`:
///
///   value = code * table.scale(), in float
///   code  = value / table.scale(), to nearest even, at most 448
///
/// NaN stays NaN, infinity becomes the largest number. The bits are those of torchao's
/// _quantize_affine_float8 and _dequantize_affine_float8 in float.
struct e4m3 : detail::table_scaled<fp8_e4m3_t> {
  static constexpr const char* name = "e4m3";  ///< see ferry::Quantization
};
static_assert(Quantization<e4m3>);

}  // namespace ferry::quantization
