// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

/// Codes of a byte with a float for the table, or for each row.
namespace ferry::quantization {

/// Numbers of the format E4M3, or E5M2, with one float for the table, as float8 checkpoints with
/// `weight_scale`:
///
///   value = code * table.scale(), in float
///   code  = value / table.scale(), to nearest even, at most 448, or 57344
///
/// NaN stays NaN, infinity becomes the largest number. The bits are those of torchao's
/// _quantize_affine_float8 and _dequantize_affine_float8 in float.
/// @{
struct e4m3 : detail::table_scaled<fp8_e4m3_t> {
  static constexpr const char* name = "e4m3";  ///< see ferry::Quantization
};
/// Codes of e5m2.
struct e5m2 : detail::table_scaled<fp8_e5m2_t> {
  static constexpr const char* name = "e5m2";  ///< see ferry::Quantization
};
/// @}
static_assert(Quantization<e4m3> && Quantization<e5m2>);

/// The codes of a quantization that has one float for the table, with one float for each row instead:
/// per_row<e4m3>, say.
///
///   scale = largest magnitude of the row / largest number of the codes, in float
///   value and code: see e4m3, with the row's scale
///
/// A row of zeros has the scale 0 and codes 0. A row with NaN has the scale NaN and is restored as NaN; one
/// with infinity has the scale infinity, the codes 0 and NaN, and is restored as NaN. The bits are those of
/// torchao's _choose_scale_float8 and _quantize_affine_float8, which divide zeros by zero.
template <Quantization Codes>
  requires(!has_scales<Codes>)
struct per_row : Codes {
  /// See ferry::Quantization.
  /// @{
  static constexpr const char* name = "per_row";
  using scale_type = float;
  static constexpr int block = 0;
  static constexpr bool has_tensor_scale = false;

  KOKKOS_FUNCTION static float scale_of(const block_range& range, float) {
    const float largest = range.largest();
    if (detail::is_not_number(largest)) return largest;  // backends differ in the bits of quotients
    using code_type = typename Codes::code_type;
    return largest / static_cast<float>(code_type::from_bits(code_type::format::largest));
  }
  KOKKOS_FUNCTION static float step_of(float scale, float) { return scale; }
  /// @}
};

}  // namespace ferry::quantization
