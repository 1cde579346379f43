// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

/// Codes with a scale for each block of a row.
namespace ferry::quantization {

/// MXFP8 of the OCP microscaling specification, with elements E4M3 or E5M2, and its MXFP4: see
/// detail::microscaling for the formulas. The first number of a pair of mxfp4 is in the lower half of its
/// byte, and a block of it with NaN has the codes 0 and 6.
/// @{
struct mxfp8 : detail::microscaling<detail::byte_codes<fp8_e4m3_t>, 8> {
  static constexpr const char* name = "mxfp8";  ///< see ferry::Quantization
};
/// As mxfp8, with codes of e5m2.
struct mxfp8_e5m2 : detail::microscaling<detail::byte_codes<fp8_e5m2_t>, 15> {
  static constexpr const char* name = "mxfp8_e5m2";  ///< see ferry::Quantization
};
/// Two codes of e2m1 in a byte.
struct mxfp4 : detail::microscaling<detail::pair_codes<fp4_e2m1_pair_t>, 2> {
  static constexpr const char* name = "mxfp4";  ///< see ferry::Quantization
};
/// @}
static_assert(Quantization<mxfp8> && Quantization<mxfp8_e5m2> && Quantization<mxfp4>);

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
