// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quotient.hpp>
#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::detail {

/// The microscaling formats of the OCP specification, version 1.0: blocks of 32 numbers with a ue8m0 scale.
///
///   scale = 2^(floor(log2(largest magnitude of the block)) - Exponent), at least 2^-127
///   code  = value / scale, to nearest even, at most the largest number of the codes
///   value = code * scale, in float
///
/// Exponent is that of the largest power of two among the codes. A block of zeros has the scale 2^-127. A
/// block with infinity has the scale 2^(128 - Exponent): infinity becomes the largest number, whose product
/// with the scale is infinite. A block with NaN has the scale NaN, zeros as codes of finite numbers and NaN
/// as codes of others, and is restored as NaN. The bits are those of torchao's to_mx with
/// ScaleCalculationMode.FLOOR, except that it divides by 2^-126 if the scale is 2^-127.
template <class Codes, int Exponent>
struct microscaling : scaled_codes<Codes> {
  using scale_type = ue8m0_t;
  static constexpr int block = 32;
  static constexpr bool has_tensor_scale = false;

  KOKKOS_FUNCTION static ue8m0_t scale_of(const block_range& range, float) {
    const float largest = range.largest();
    if (is_not_number(largest)) return ue8m0_t::from_bits(0xff);
    const int exponent = static_cast<int>(bit_cast<std::uint32_t>(largest) >> 23) - Exponent;
    return ue8m0_t::from_bits(static_cast<std::uint8_t>(exponent < 0 ? 0 : exponent));
  }
  KOKKOS_FUNCTION static float step_of(ue8m0_t scale, float) { return static_cast<float>(scale); }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    return Codes::bits_of(scaled(value, step));
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return Codes::bits_at_random(scaled(value, step), random);
  }

  /// An encoder for blocks whose step is a number: none of their numbers is NaN.
  struct encoder {
    float factor;
    bool is_number;

    KOKKOS_FORCEINLINE_FUNCTION explicit encoder(float step)
        : factor(inverse_of(step)), is_number(!is_not_number(step)) {}
    KOKKOS_FORCEINLINE_FUNCTION bool encode_four(const float (&value)[4], std::uint32_t& codes) const {
      const float scaled[4] = {value[0] * factor, value[1] * factor, value[2] * factor, value[3] * factor};
      return is_number && Codes::bits_of_four(scaled, codes);
    }
  };

 private:
  /// value / step. The product has the same bits, because the reciprocal of a power of two is exact. It is
  /// that of the exponents 0 to 254: arithmetic may take the step 2^-127 for zero.
  KOKKOS_FUNCTION static float scaled(float value, float step) {
    const bool is_finite = (bit_cast<std::uint32_t>(value) & 0x7fffffffu) < 0x7f800000u;
    if (is_not_number(step)) return with_sign_of(value, is_finite ? 0u : 0x7fc00000u);
    if (is_not_number(value)) return value;
    return value * inverse_of(step);
  }
  KOKKOS_FORCEINLINE_FUNCTION static float inverse_of(float step) {
    const auto exponent = bit_cast<std::uint32_t>(step) >> 23;
    return float8_e8m0fnu::value_of(static_cast<std::uint8_t>(254u - exponent));
  }
};

}  // namespace ferry::detail
