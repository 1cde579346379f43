// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quotient.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::detail {

/// Codes of 8 and 4 bits of the microscaling formats.
/// @{
template <class Byte>
struct byte_codes {
  using code_type = Byte;
  static constexpr int code_bits = 8;
  KOKKOS_FUNCTION static float value_of(std::uint32_t code) {
    return Byte::format::template decoded<typename Byte::format>(code);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool values_of_word(std::uint32_t word, float (&value)[4]) {
    return Byte::format::decode_word(word, value);
  }
  KOKKOS_FUNCTION static std::uint32_t bits_of(float value) { return Byte::format::bits_of(value); }
  KOKKOS_FUNCTION static std::uint32_t bits_at_random(float value, std::uint32_t random) {
    return Byte::format::bits_at_random(value, random);
  }
};
template <class Pair>
struct pair_codes {
  using code_type = Pair;
  static constexpr int code_bits = 4;
  KOKKOS_FUNCTION static float value_of(std::uint32_t code) {
    return Pair::format::value_of(static_cast<std::uint8_t>(code));
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool values_of_word(std::uint32_t word, float (&value)[8]) {
    return Pair::format::decode_word(word, value);
  }
  KOKKOS_FUNCTION static std::uint32_t bits_of(float value) { return Pair::format::bits_of(value); }
  KOKKOS_FUNCTION static std::uint32_t bits_at_random(float value, std::uint32_t random) {
    return Pair::format::bits_at_random(value, random);
  }
};
/// @}

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
struct microscaling : Codes {
  using scale_type = ue8m0_t;
  using step_type = float;
  static constexpr int block = 32;
  static constexpr bool has_tensor_scale = false;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static ue8m0_t scale_of(const block_range& range, float) {
    const float largest = range.largest();
    if (is_not_number(largest)) return ue8m0_t::from_bits(0xff);
    const int exponent = static_cast<int>(bit_cast<std::uint32_t>(largest) >> 23) - Exponent;
    return ue8m0_t::from_bits(static_cast<std::uint8_t>(exponent < 0 ? 0 : exponent));
  }
  KOKKOS_FUNCTION static float step_of(ue8m0_t scale, float) { return static_cast<float>(scale); }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) { return Codes::value_of(code) * step; }
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_word(std::uint32_t word, float step, float (&value)[N]) {
    if (!Codes::values_of_word(word, value)) return false;
    for (float& number : value) number *= step;
    return true;
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    return Codes::bits_of(scaled(value, step));
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return Codes::bits_at_random(scaled(value, step), random);
  }

 private:
  /// value / step. The product has the same bits, because the reciprocal of a power of two is exact. It is
  /// that of the exponents 0 to 254: arithmetic may take the step 2^-127 for zero.
  KOKKOS_FUNCTION static float scaled(float value, float step) {
    const bool is_finite = (bit_cast<std::uint32_t>(value) & 0x7fffffffu) < 0x7f800000u;
    if (is_not_number(step)) return with_sign_of(value, is_finite ? 0u : 0x7fc00000u);
    if (is_not_number(value)) return value;
    const auto exponent = bit_cast<std::uint32_t>(step) >> 23;
    return value * float8_e8m0fnu::value_of(static_cast<std::uint8_t>(254u - exponent));
  }
};

}  // namespace ferry::detail
