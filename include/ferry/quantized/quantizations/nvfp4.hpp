// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

namespace ferry::quantization {

/// NVIDIA's NVFP4: numbers of the format E2M1 in pairs, the first one in the lower half of its byte; blocks
/// of 16 numbers with an E4M3 scale; one float for the table.
///
///   scale = largest magnitude of the block / 6 / table.scale(), in [2^-6, 448], to nearest even
///   step  = table.scale() * scale
///   code  = value / step, to nearest even, at most 6
///   value = code * step
///
/// All in float. A block of zeros has the scale 2^-6. Infinity becomes 6 with the scale 448. A block with NaN
/// has the scale NaN, and is restored as NaN; its codes are 6. The bits are those of torchao's
/// nvfp4_quantize, except for the codes of NaN. table.scale() is usually the table's largest magnitude /
/// 2688.
struct nvfp4 : detail::divided_codes<detail::pair_codes<fp4_e2m1_pair_t>> {
  /// See ferry::Quantization.
  /// @{
  static constexpr const char* name = "nvfp4";
  using scale_type = fp8_e4m3_t;
  static constexpr int block = 16;
  static constexpr bool has_tensor_scale = true;

  KOKKOS_FUNCTION static fp8_e4m3_t scale_of(const block_range& range, float tensor_scale) {
    const float least = 0x1p-6f;
    const float scale = detail::quotient(range.largest() / 6.0f, tensor_scale);
    return fp8_e4m3_t(scale < least ? least : scale);
  }
  KOKKOS_FUNCTION static float step_of(fp8_e4m3_t scale, float tensor_scale) {
    return tensor_scale * static_cast<float>(scale);
  }
  /// @}
};
static_assert(Quantization<nvfp4>);

}  // namespace ferry::quantization
