// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quotient.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::quantization {

/// Numbers of the format E5M2 with one float for the table, as float8 checkpoints with `weight_scale`:
///
///   value = code * table.scale(), in float
///   code  = value / table.scale(), to nearest even, at most 57344
///
/// NaN stays NaN, infinity becomes the largest number. The bits are those of torchao's
/// _quantize_affine_float8 and _dequantize_affine_float8 in float.
struct e5m2 {
  /// See ferry::Quantization.
  /// @{
  static constexpr const char* name = "e5m2";
  using code_type = fp8_e5m2_t;
  using scale_type = no_scale;
  using step_type = float;
  static constexpr int code_bits = 8;
  static constexpr int block = 0;
  static constexpr bool has_tensor_scale = true;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static no_scale scale_of(const block_range&, float) { return {}; }
  KOKKOS_FUNCTION static float step_of(no_scale, float tensor_scale) { return tensor_scale; }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) {
    return static_cast<float>(code_type::from_bits(static_cast<std::uint8_t>(code))) * step;
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    return code_type(detail::quotient(value, step)).bits();
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return code_type::at_random(detail::quotient(value, step), random).bits();
  }
  /// @}
};
static_assert(Quantization<e5m2>);

}  // namespace ferry::quantization
