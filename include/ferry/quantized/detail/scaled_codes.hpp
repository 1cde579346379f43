// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/fp8.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// Quotients of numbers and steps with the same bits on every backend.
namespace ferry::detail {

KOKKOS_FUNCTION constexpr bool is_not_number(float value) {
  return (bit_cast<std::uint32_t>(value) & 0x7fffffffu) > 0x7f800000u;
}

/// NaN, infinity or zero with the sign of a number.
KOKKOS_FUNCTION constexpr float with_sign_of(float value, std::uint32_t magnitude) {
  return bit_cast<float>((bit_cast<std::uint32_t>(value) & 0x80000000u) | magnitude);
}

/// value / step, rounded once; zero if the step is zero. NaN has the sign of the value, because backends
/// differ in it. A compiler may multiply by the reciprocal, which is infinite for subnormal steps, so both
/// numbers are multiplied by a power of two before.
KOKKOS_FUNCTION constexpr float quotient(float value, float step) {
  if ((bit_cast<std::uint32_t>(step) & 0x7f800000u) == 0u) {
    step *= 0x1p24f;
    value *= 0x1p24f;
    if (step == 0.0f) return with_sign_of(value, 0u);
  }
  const float result = value / step;
  return is_not_number(result) ? with_sign_of(value, 0x7fc00000u) : result;
}

/// Quotients by one step that is neither subnormal nor huge, on devices: a division takes more instructions
/// than the rest of a code. A product by the reciprocal, corrected by its exact remainder, has the same bits
/// (Markstein, IBM Journal of Research and Development 34, 1990).
class step_quotients {
 public:
  KOKKOS_FORCEINLINE_FUNCTION explicit step_quotients(float step)
      : step_(step), inverse_(1.0f / step), is_middle_(step > 0x1p-60f && step < 0x1p60f) {}

  /// quotient[e] = quotient(value[e], step), or returns false if remainders might not be exact.
  KOKKOS_FORCEINLINE_FUNCTION bool of_four(const float (&value)[4], float (&quotient)[4]) const {
    // Also false for NaN and infinity.
    const bool is_middle =
        Kokkos::fabs(value[0]) + Kokkos::fabs(value[1]) + Kokkos::fabs(value[2]) + Kokkos::fabs(value[3]) <
        0x1p60f;
    if (!is_middle_ || !is_middle) return false;
    for (int e = 0; e < 4; ++e) {
      const float rough = value[e] * inverse_;
      const float estimate = Kokkos::fma(Kokkos::fma(-rough, step_, value[e]), inverse_, rough);
      quotient[e] = with_sign_of(value[e], bit_cast<std::uint32_t>(estimate) & 0x7fffffffu);  // also of zero
    }
    return true;
  }

 private:
  float step_;
  float inverse_;
  bool is_middle_;
};

// Codes whose values are multiplied by a float.

/// Codes of 8 and 4 bits.
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
  template <class Dependent = void>
  KOKKOS_FORCEINLINE_FUNCTION static bool bits_of_four([[maybe_unused]] const float (&value)[4],
                                                       [[maybe_unused]] std::uint32_t& bits) {
    KOKKOS_IF_ON_DEVICE(
        (return device_backend<Dependent>::template encode_four_bytes<std::is_same_v<Byte, fp8_e5m2_t>>(
                    value, bits);))
    KOKKOS_IF_ON_HOST((return false;))
  }
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
  KOKKOS_FORCEINLINE_FUNCTION static bool bits_of_four(const float (&value)[4], std::uint32_t& bits) {
    bits = 0;
    for (int e = 0; e < 4; ++e) bits |= std::uint32_t{Pair::format::bits_of(value[e])} << (4 * e);
    return true;
  }
  KOKKOS_FUNCTION static std::uint32_t bits_at_random(float value, std::uint32_t random) {
    return Pair::format::bits_at_random(value, random);
  }
};
/// @}

/// value = code * step, in float.
template <class Codes>
struct scaled_codes : Codes {
  using step_type = float;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) { return Codes::value_of(code) * step; }
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_word(std::uint32_t word, float step, float (&value)[N]) {
    if (!Codes::values_of_word(word, value)) return false;
    for (float& number : value) number *= step;
    return true;
  }
};

/// Also code = value / step, to nearest even, at most the largest number of the codes.
template <class Codes>
struct divided_codes : scaled_codes<Codes> {
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    return Codes::bits_of(quotient(value, step));
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return Codes::bits_at_random(quotient(value, step), random);
  }
  struct encoder {
    step_quotients quotients;

    KOKKOS_FORCEINLINE_FUNCTION explicit encoder(float step) : quotients(step) {}
    KOKKOS_FORCEINLINE_FUNCTION bool encode_four(const float (&value)[4], std::uint32_t& codes) const {
      float quotient[4];
      return quotients.of_four(value, quotient) && Codes::bits_of_four(quotient, codes);
    }
  };
};

/// Codes of a byte with one float for the table and no scales of blocks:
///
///   value = code * table.scale(), in float
///   code  = value / table.scale(), to nearest even, at most the largest number of the codes
template <class Byte>
struct table_scaled : divided_codes<byte_codes<Byte>> {
  using scale_type = no_scale;
  static constexpr int block = 0;
  static constexpr bool has_tensor_scale = true;

  KOKKOS_FUNCTION static no_scale scale_of(const block_range&, float) { return {}; }
  KOKKOS_FUNCTION static float step_of(no_scale, float tensor_scale) { return tensor_scale; }
};

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
