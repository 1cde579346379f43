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
