// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quotient.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

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
struct nvfp4 {
  /// See ferry::Quantization.
  /// @{
  static constexpr const char* name = "nvfp4";
  using code_type = fp4_e2m1_pair_t;
  using scale_type = fp8_e4m3_t;
  using step_type = float;
  static constexpr int code_bits = 4;
  static constexpr int block = 16;
  static constexpr bool has_tensor_scale = true;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static fp8_e4m3_t scale_of(const block_range& range, float tensor_scale) {
    const float least = 0x1p-6f;
    const float scale = detail::quotient(range.largest() / 6.0f, tensor_scale);
    return fp8_e4m3_t(scale < least ? least : scale);
  }
  KOKKOS_FUNCTION static float step_of(fp8_e4m3_t scale, float tensor_scale) {
    return tensor_scale * static_cast<float>(scale);
  }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) {
    return float4_e2m1fn::value_of(static_cast<std::uint8_t>(code)) * step;
  }
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_word(std::uint32_t word, float step, float (&value)[N]) {
    if (!float4_e2m1fn::decode_word(word, value)) return false;
    for (float& number : value) number *= step;
    return true;
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    return float4_e2m1fn::bits_of(detail::quotient(value, step));
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return float4_e2m1fn::bits_at_random(detail::quotient(value, step), random);
  }
  /// @}
};
static_assert(Quantization<nvfp4>);

}  // namespace ferry::quantization
