// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

/// The bits of a float with the sign of an 8-bit number, quiet and without a payload.
KOKKOS_FUNCTION constexpr std::uint32_t nan_with_sign(std::uint32_t byte) {
  return 0x7fc00000u | (byte & 0x80u) << 24;
}

/// A format of 8 bits with a sign. `Five`: E5M2, else E4M3. `Largest`: the code of the largest number;
/// `Overflow`: what lies beyond it; `NotNumber`: the code that NaN gets.
template <int Mantissa, int Bias, bool Five, std::uint8_t Largest, std::uint8_t Overflow,
          std::uint8_t NotNumber>
struct signed_byte {
  using rounding = minifloat<Mantissa, Bias>;

  /// The code of the largest number.
  static constexpr std::uint8_t largest = Largest;

  /// As value_of, but NaN may lose its sign: devices convert by their instructions.
  template <class Format, class Dependent = void>
  KOKKOS_FUNCTION static float decoded(std::uint32_t code) {
    KOKKOS_IF_ON_DEVICE((if (float value = 0; device_backend<Dependent>::template decode_byte<Five>(
                                 code, value)) return value;))
    return Format::value_of(static_cast<std::uint8_t>(code));
  }

  /// value[k] = the number whose bits are byte k of a word, the lowest first, by a device's instructions.
  /// Returns false if it has none. NaN may lose its sign.
  template <class Dependent = void>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_word([[maybe_unused]] std::uint32_t word,
                                                      [[maybe_unused]] float (&value)[4]) {
    KOKKOS_IF_ON_DEVICE((return device_backend<Dependent>::template decode_four_bytes<Five>(word, value);))
    KOKKOS_IF_ON_HOST((return false;))
  }

  /// The nearest number, ties to even; beyond the largest number the largest, also for infinity.
  template <class Dependent = void>
  KOKKOS_FUNCTION static constexpr std::uint8_t bits_of(float value) {
    KOKKOS_IF_ON_DEVICE((if (!__builtin_is_constant_evaluated()) {
      const auto bits = bit_cast<std::uint32_t>(value);
      const auto not_number = static_cast<std::uint8_t>((bits >> 24 & 0x80u) | NotNumber);
      std::uint8_t nearest = 0;
      if (device_backend<Dependent>::template encode_byte<Five>(value, nearest))
        return (bits & 0x7fffffffu) > 0x7f800000u ? not_number : nearest;
    }))
    return encoded(value, Largest);
  }

  /// As bits_of, but not saturating.
  KOKKOS_FUNCTION static constexpr std::uint8_t unsaturated_bits(float value) {
    return encoded(value, Overflow);
  }

  /// As binary16::bits_at_random; saturating.
  template <class Dependent = void>
  KOKKOS_FUNCTION static constexpr std::uint8_t bits_at_random(float value, std::uint32_t random) {
    constexpr std::uint32_t limit = (static_cast<std::uint32_t>(Largest) << rounding::lost_bits) +
                                    (static_cast<std::uint32_t>(rounding::exponent_shift) << 23);
    const auto bits = bit_cast<std::uint32_t>(value);
    const auto magnitude = bits & 0x7fffffffu;
    if (magnitude > limit) return bits_of<Dependent>(value);
    return static_cast<std::uint8_t>(((bits >> 24) & 0x80u) | rounding::at_random(magnitude, random));
  }

 private:
  /// The nearest number; `beyond` is the code of what lies beyond the largest one.
  KOKKOS_FUNCTION static constexpr std::uint8_t encoded(float value, std::uint8_t beyond) {
    const auto bits = bit_cast<std::uint32_t>(value);
    const auto magnitude = bits & 0x7fffffffu;
    const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80u);
    if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(sign | NotNumber);
    const auto code = rounding::nearest(magnitude);
    return static_cast<std::uint8_t>(sign | (code > Largest ? beyond : code));
  }
};

}  // namespace detail

/// The format E4M3 of the OCP 8-bit floating-point specification, `float8_e4m3fn` of ml_dtypes and PyTorch:
/// magnitudes up to 448, from 2^-9; no infinity; 0x7f and 0xff are NaN.
struct float8_e4m3fn : detail::signed_byte<3, 7, false, 0x7e, 0x7f, 0x7f> {
  /// The value of the number with these bits, exactly.
  KOKKOS_FUNCTION static constexpr float value_of(std::uint8_t bits) {
    // The number is 2^8 times the binary16 whose exponent and mantissa have these bits.
    const std::uint32_t byte = bits;
    const auto half = static_cast<std::uint16_t>((byte & 0x80u) << 8 | (byte & 0x7fu) << 7);
    const float number = binary16::value_of(half) * 256.0f;
    return (byte & 0x7fu) == 0x7fu ? detail::bit_cast<float>(detail::nan_with_sign(byte)) : number;
  }
};

/// The format E5M2 of the OCP 8-bit floating-point specification, `float8_e5m2`: magnitudes up to 57344,
/// from 2^-16; infinities 0x7c and 0xfc, NaN above them.
struct float8_e5m2 : detail::signed_byte<2, 15, true, 0x7b, 0x7c, 0x7e> {
  /// The value of the number with these bits, exactly.
  KOKKOS_FUNCTION static constexpr float value_of(std::uint8_t bits) {
    const std::uint32_t byte = bits;
    const float number = binary16::value_of(static_cast<std::uint16_t>(byte << 8));
    return (byte & 0x7fu) > 0x7cu ? detail::bit_cast<float>(detail::nan_with_sign(byte)) : number;
  }
};

/// The format E8M0 of the OCP microscaling specification, `float8_e8m0fnu`: the powers of two from 2^-127 to
/// 2^127, which scale blocks of numbers; no sign, no zero; 0xff is NaN.
struct float8_e8m0fnu {
  /// The code of the largest number.
  static constexpr std::uint8_t largest = 0xfe;

  /// The nearest power of two; 1.5 times one goes up. Zero gives 2^-127, too large numbers and infinity
  /// 2^127, negative numbers NaN.
  KOKKOS_FUNCTION static constexpr std::uint8_t bits_of(float value) {
    return rounded<true>(value, 0x400000);
  }
  /// As bits_of; zero and numbers that round to 2^128 and more give NaN.
  KOKKOS_FUNCTION static constexpr std::uint8_t unsaturated_bits(float value) {
    return (detail::bit_cast<std::uint32_t>(value) & 0x7fffffffu) == 0u ? std::uint8_t{0xff}
                                                                        : rounded<false>(value, 0x400000);
  }
  /// The largest power of two that is no larger.
  KOKKOS_FUNCTION static constexpr std::uint8_t floor_bits(float value) { return rounded<true>(value, 0); }
  /// The least power of two that is no smaller.
  KOKKOS_FUNCTION static constexpr std::uint8_t ceil_bits(float value) {
    return rounded<true>(value, 0x7fffff);
  }
  /// One of the two neighbours, see binary16::bits_at_random.
  KOKKOS_FUNCTION static constexpr std::uint8_t bits_at_random(float value, std::uint32_t random) {
    return rounded<true>(value, random >> 9);
  }
  /// The value of the number with these bits, exactly.
  KOKKOS_FUNCTION static constexpr float value_of(std::uint8_t bits) {
    const std::uint32_t byte = bits;
    return detail::bit_cast<float>(byte == 0xffu ? 0x7fc00000u : byte == 0u ? 0x00400000u : byte << 23);
  }

 private:
  /// The exponent after `added` was added to the mantissa, which has 23 bits.
  template <bool Saturates>
  KOKKOS_FUNCTION static constexpr std::uint8_t rounded(float value, std::uint32_t added) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xff;
    if (bits > 0x80000000u) return 0xff;  // negative
    const auto magnitude = bits & 0x7fffffffu;
    // A float below 2^-126 has another distance to the next power of two: its leading bit is stored.
    const auto code = magnitude >= 0x00800000u   ? (magnitude + added) >> 23
                      : magnitude <= 0x00400000u ? 0u
                                                 : ((magnitude - 0x00400000u) * 2u + added) >> 23;
    if (code <= largest) return static_cast<std::uint8_t>(code);
    return Saturates ? largest : std::uint8_t{0xff};
  }
};

/// A floating-point number of 8 bits with the same bits on every backend. It is for storage: verbs move and
/// convert it; kernels of your own convert it to float for arithmetic. Conversions from other numbers round
/// once, to nearest even, also from double and 64-bit integers. They saturate, as CUDA's with __NV_SATFINITE:
/// a number beyond the largest one, and infinity, become the largest one, because a scale brings quantized
/// numbers into the range, and one that rounding takes beyond it must not spoil its row. ml_dtypes and
/// PyTorch do not saturate; see unsaturated().
template <class Format>
class byte_float {
 public:
  /// The format of the number.
  using format = Format;

  /// Not initialised.
  byte_float() = default;
  /// The nearest number, ties to even, saturating.
  template <class T>
  requires std::is_arithmetic_v<T> KOKKOS_FUNCTION constexpr explicit byte_float(T value)
      : bits_(Format::bits_of(to_float(value))) {}
  /// The nearest number, ties to even, as ml_dtypes converts: what rounds beyond the largest number becomes
  /// NaN for e4m3 and ue8m0, infinity for e5m2.
  template <class T>
  requires std::is_arithmetic_v<T> KOKKOS_FUNCTION static constexpr byte_float unsaturated(T value) {
    return from_bits(Format::unsaturated_bits(to_float(value)));
  }
  /// One of the two neighbours of `value`, chosen by 32 random bits. The mean over all random bits is
  /// `value`. Above the largest number: the largest one.
  KOKKOS_FUNCTION static constexpr byte_float at_random(float value, std::uint32_t random) {
    return from_bits(Format::bits_at_random(value, random));
  }
  /// The largest power of two that is at most `value`, for ue8m0_t. The OCP microscaling specification takes
  /// it of the largest magnitude of a block, and divides it by the largest power of two of its elements.
  /// Saturates as the constructor.
  template <class T>
    requires(std::is_arithmetic_v<T>&& std::is_same_v<Format, float8_e8m0fnu>)
  KOKKOS_FUNCTION static constexpr byte_float floor(T value) {
    return from_bits(Format::floor_bits(to_float(value)));
  }
  /// The least power of two that is at least `value`, for ue8m0_t: no element of a block exceeds the range
  /// that its largest magnitude was divided by. Saturates as the constructor.
  template <class T>
    requires(std::is_arithmetic_v<T>&& std::is_same_v<Format, float8_e8m0fnu>)
  KOKKOS_FUNCTION static constexpr byte_float ceil(T value) {
    return from_bits(Format::ceil_bits(to_float(value)));
  }
  /// The value, exactly.
  KOKKOS_FUNCTION constexpr operator float() const { return Format::value_of(bits_); }
  /// The number with these bits.
  KOKKOS_FUNCTION static constexpr byte_float from_bits(std::uint8_t bits) {
    return detail::bit_cast<byte_float>(bits);
  }
  /// The bits of the number.
  [[nodiscard]] KOKKOS_FUNCTION constexpr std::uint8_t bits() const { return bits_; }

 private:
  template <class T>
  KOKKOS_FUNCTION static constexpr float to_float(T value) {
    if constexpr (std::is_same_v<T, float>)
      return value;
    else
      return detail::to_float_odd(detail::sticky_double(value));
  }

  std::uint8_t bits_;
};

/// E4M3 without infinity: 4 bits of precision, magnitudes up to 448.
using fp8_e4m3_t = byte_float<float8_e4m3fn>;
/// E5M2: 3 bits of precision, the exponents of half_t, magnitudes up to 57344.
using fp8_e5m2_t = byte_float<float8_e5m2>;
/// A power of two from 2^-127 to 2^127, or NaN.
using ue8m0_t = byte_float<float8_e8m0fnu>;

/// fp8_e4m3_t, fp8_e5m2_t and ue8m0_t have a value.
template <class Format>
inline constexpr bool is_byte_float<byte_float<Format>> = true;

static_assert(sizeof(fp8_e4m3_t) == 1 && ValueElement<fp8_e4m3_t> && !NumberElement<fp8_e4m3_t>);
static_assert(sizeof(ue8m0_t) == 1 && std::is_trivially_copyable_v<ue8m0_t>);

}  // namespace ferry
