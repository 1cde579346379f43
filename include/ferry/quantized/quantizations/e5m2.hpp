// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp8.hpp>

namespace ferry::quantization {

/// Numbers of the format E5M2 with one float for the table, as float8 checkpoints with `weight_scale`:
///
///   value = code * table.scale(), in float
///   code  = value / table.scale(), to nearest even, at most 57344
///
/// NaN stays NaN, infinity becomes the largest number. The bits are those of torchao's
/// _quantize_affine_float8 and _dequantize_affine_float8 in float.
struct e5m2 : detail::table_scaled<fp8_e5m2_t> {
  static constexpr const char* name = "e5m2";  ///< see ferry::Quantization
};
static_assert(Quantization<e5m2>);

}  // namespace ferry::quantization
