// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/quantized/quantization.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::quantization {

/// Rows of FBGEMM's fused 8-bit rowwise format: see rowwise_int8_tensor, which is the table of this
/// quantization.
///
///   scale = (most - least) / 255, offset = least
///   code  = (value - offset) / scale, to nearest even
///   value = offset + scale * code, in double
///
/// A constant row has the scale 0 and is restored exactly. A row with infinity or NaN has NaN as scale and
/// offset, and is restored as NaN.
struct rowwise_int8 {
  /// See ferry::Quantization.
  /// @{
  static constexpr const char* name = "rowwise_int8";
  using code_type = std::byte;
  using scale_type = kernels::rowwise_int8_code;
  using step_type = kernels::rowwise_int8_code;
  static constexpr int code_bits = 8;
  static constexpr int block = 0;
  static constexpr bool has_tensor_scale = false;
  static constexpr bool in_records = true;

  KOKKOS_FUNCTION static scale_type scale_of(const block_range& range, float) {
    return scale_type::of(range.least, range.most);
  }
  KOKKOS_FUNCTION static step_type step_of(const scale_type& scale, float) { return scale; }
  KOKKOS_FUNCTION static double decode(std::uint32_t code, const step_type& step) {
    return step.decode(static_cast<std::uint8_t>(code));
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, const step_type& step) {
    return step.has_steps() ? step.by_steps().nearest(value) : 0u;
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, const step_type& step,
                                                        std::uint32_t random) {
    return step.has_steps() ? step.by_steps().at_random(value, random) : 0u;
  }
  /// @}
};
static_assert(Quantization<rowwise_int8>);

}  // namespace ferry::quantization
