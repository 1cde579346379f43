// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quotient.hpp>
#include <ferry/quantized/quantization.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::detail {

/// Codes of a byte with one float for the table and no scales of blocks:
///
///   value = code * table.scale(), in float
///   code  = value / table.scale(), to nearest even, at most the largest number of the codes
template <class Byte>
struct table_scaled {
  using code_type = Byte;
  using scale_type = no_scale;
  using step_type = float;
  static constexpr int code_bits = 8;
  static constexpr int block = 0;
  static constexpr bool has_tensor_scale = true;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static no_scale scale_of(const block_range&, float) { return {}; }
  KOKKOS_FUNCTION static float step_of(no_scale, float tensor_scale) { return tensor_scale; }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) {
    return Byte::format::template decoded<typename Byte::format>(code) * step;
  }
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_word(std::uint32_t word, float step, float (&value)[N]) {
    if (!Byte::format::decode_word(word, value)) return false;
    for (float& number : value) number *= step;
    return true;
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    return Byte(quotient(value, step)).bits();
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return Byte::at_random(quotient(value, step), random).bits();
  }
};

}  // namespace ferry::detail
