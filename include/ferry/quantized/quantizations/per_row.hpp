// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>

#include <Kokkos_Macros.hpp>

namespace ferry::quantization {

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
