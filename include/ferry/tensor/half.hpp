// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

/// std::bit_cast for kernels. For nvcc the standard one is a host function.
template <class To, class From>
KOKKOS_FUNCTION constexpr To bit_cast(const From& source) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, source);
}

/// Rounding to floating-point formats with few bits: `Mantissa` bits of the mantissa, and `Bias` of the
/// exponent. A magnitude is the bits of a float without its sign; a code is the bits of the number without
/// its sign, as if exponents had no upper end.
template <int Mantissa, int Bias>
struct minifloat {
  static constexpr int lost_bits = 23 - Mantissa;          ///< of a normal number
  static constexpr int exponent_shift = 127 - Bias;        ///< between the two biases
  static constexpr int least_normal = exponent_shift + 1;  ///< the exponent field of a float

  /// The code of the nearest number, ties to even. Not for NaN.
  KOKKOS_FUNCTION static constexpr std::uint32_t nearest(std::uint32_t magnitude) {
    const int exponent = static_cast<int>(magnitude >> 23);
    if (exponent >= least_normal) {
      const auto rounded = magnitude + ((1u << (lost_bits - 1)) - 1u) + ((magnitude >> lost_bits) & 1u);
      return (rounded >> lost_bits) - (static_cast<std::uint32_t>(exponent_shift) << Mantissa);
    }
    // An addition to 2^23 times the least number rounds to its multiples.
    constexpr auto unit = bit_cast<float>(static_cast<std::uint32_t>(least_normal - Mantissa + 23) << 23);
    return bit_cast<std::uint32_t>(bit_cast<float>(magnitude) + unit) - bit_cast<std::uint32_t>(unit);
  }

  /// The code of one of the two neighbours. `random` is added to the bits that are lost, as a fraction of
  /// 2^32; a carry selects the larger one. Not for NaN.
  KOKKOS_FUNCTION static constexpr std::uint32_t at_random(std::uint32_t magnitude, std::uint32_t random) {
    const int exponent = static_cast<int>(magnitude >> 23);
    if (exponent >= least_normal)
      return ((magnitude + (random >> (32 - lost_bits))) >> lost_bits) -
             (static_cast<std::uint32_t>(exponent_shift) << Mantissa);
    if (exponent == 0) return 0;  // far less than a fraction of 2^-32 of the least number
    const int shift = lost_bits + least_normal - exponent;
    const std::uint64_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint64_t scaled = shift < 64 ? (mantissa << 32) >> shift : 0;
    const std::uint64_t lost = scaled & 0xffffffffu;
    return static_cast<std::uint32_t>((scaled >> 32) + ((lost + random) >> 32));
  }
};

/// `value` rounded to odd. Rounding the result to a narrower format gives the same bits as rounding the
/// double directly (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
KOKKOS_FUNCTION constexpr float to_float_odd(double value) {
  const auto nearest = static_cast<float>(value);
  auto bits = bit_cast<std::uint32_t>(nearest);
  // Infinities and NaN are tested by their bits: with finite-math options compilers drop comparisons.
  if ((bits & 1u) != 0u || (bits & 0x7f800000u) == 0x7f800000u) return nearest;
  const auto back = static_cast<double>(nearest);
  if (back == value) return nearest;
  const bool grew = (back > value) == (value > 0);  // the magnitude was rounded up
  if ((bits & 0x7fffffffu) == 0u)
    bits = (value < 0 ? 0x80000001u : 1u);
  else
    bits = grew ? bits - 1u : bits + 1u;
  return bit_cast<float>(bits);
}

/// `value` as a double for to_float_odd. Above 2^53, a sticky bit keeps the bits that a double lacks, so
/// integers are not rounded twice.
template <class T>
KOKKOS_FUNCTION constexpr double sticky_double(T value) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    bool negative = false;
    if constexpr (std::is_signed_v<T>) negative = value < 0;
    auto magnitude =
        negative ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    if ((magnitude >> 53) != 0u) magnitude = (magnitude >> 11 | ((magnitude & 0x7ffu) != 0u ? 1u : 0u)) << 11;
    return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  } else {
    return static_cast<double>(value);
  }
}

}  // namespace detail

/// The format IEEE binary16: 1 sign, 5 exponent and 10 mantissa bits. Devices convert by their instructions.
/// These lose the bits of what is not a number, so such values are converted apart.
struct binary16 {
  /// The number in which devices convert.
  using device_half = Kokkos::Experimental::half_t;

  /// The nearest number, ties to even. 65520 and above give infinity.
  KOKKOS_FUNCTION static constexpr std::uint16_t bits_of(float value) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    KOKKOS_IF_ON_DEVICE((if (!__builtin_is_constant_evaluated()) {
      const auto number = Kokkos::Experimental::cast_to_half(value);
      const auto nearest = detail::bit_cast<std::uint16_t>(static_cast<device_half::impl_type>(number));
      const auto not_number = static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | 0x7e00u);
      return (bits & 0x7fffffffu) > 0x7f800000u ? not_number : nearest;
    }))
    const auto sign = (bits >> 16) & 0x8000u;
    const auto absolute = bits & 0x7fffffffu;
    if (absolute > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // not a number
    if (absolute >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 and above
    return static_cast<std::uint16_t>(sign | detail::minifloat<10, 15>::nearest(absolute));
  }

  /// One of the two neighbours of `value`. `random` is added to the bits that are lost, as a fraction of
  /// 2^32; a carry selects the neighbour of larger magnitude. Above the largest number the result is the
  /// nearest number: a finite value becomes infinite only if bits_of makes it so.
  KOKKOS_FUNCTION static constexpr std::uint16_t bits_at_random(float value, std::uint32_t random) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    const auto absolute = bits & 0x7fffffffu;
    if (absolute > 0x477fe000u) return bits_of(value);  // above 65504, or not a number
    return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) |
                                      detail::minifloat<10, 15>::at_random(absolute, random));
  }

  /// The value of the number with these bits, exactly.
  KOKKOS_FUNCTION static constexpr float value_of(std::uint16_t bits) {
    const auto sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const auto exponent = static_cast<std::uint32_t>(bits >> 10) & 0x1fu;
    const auto mantissa = static_cast<std::uint32_t>(bits) & 0x3ffu;
    KOKKOS_IF_ON_DEVICE((if (!__builtin_is_constant_evaluated()) {
      const device_half half(detail::bit_cast<device_half::impl_type>(bits));
      // Outside of the selection, which would become a branch.
      const auto number = Kokkos::Experimental::cast_from_half<float>(half);
      const auto not_number = detail::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
      return (bits & 0x7fffu) > 0x7c00u ? not_number : number;
    }))
    if (exponent == 0x1fu) return detail::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0u) return detail::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    const auto magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal, exact
    return detail::bit_cast<float>(detail::bit_cast<std::uint32_t>(magnitude) | sign);
  }
};

/// The format bfloat16: 1 sign, 8 exponent and 7 mantissa bits.
struct bfloat16 {
  /// The nearest number, ties to even.
  KOKKOS_FUNCTION static constexpr std::uint16_t bits_of(float value) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }

  /// As binary16::bits_at_random.
  KOKKOS_FUNCTION static constexpr std::uint16_t bits_at_random(float value, std::uint32_t random) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f7f0000u) return bits_of(value);  // above the largest, or not a number
    return static_cast<std::uint16_t>((bits + (random >> 16)) >> 16);
  }

  /// The value of the number with these bits, exactly.
  KOKKOS_FUNCTION static constexpr float value_of(std::uint16_t bits) {
    return detail::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// A 16-bit floating-point number with the same bits on every backend (Kokkos' half is a float on most
/// hosts). It converts to float for arithmetic. Conversions from other numbers round once, to nearest even,
/// also from double and 64-bit integers.
template <class Format>
class narrow_float {
 public:
  /// Not initialised.
  narrow_float() = default;
  /// The nearest number, ties to even.
  template <class T>
  requires std::is_arithmetic_v<T> KOKKOS_FUNCTION constexpr explicit narrow_float(T value)
      : bits_(Format::bits_of(std::is_same_v<T, float>
                                  ? static_cast<float>(value)
                                  : detail::to_float_odd(detail::sticky_double(value)))) {}
  /// One of the two neighbours of `value`, chosen by 32 random bits. The mean over all random bits is
  /// `value`. Above the largest number: the nearest one.
  KOKKOS_FUNCTION static constexpr narrow_float at_random(float value, std::uint32_t random) {
    return from_bits(Format::bits_at_random(value, random));
  }
  /// The value, exactly.
  KOKKOS_FUNCTION constexpr operator float() const { return Format::value_of(bits_); }
  /// The number with these bits.
  KOKKOS_FUNCTION static constexpr narrow_float from_bits(std::uint16_t bits) {
    narrow_float result(0.0f);
    result.bits_ = bits;
    return result;
  }
  /// The bits of the number.
  [[nodiscard]] KOKKOS_FUNCTION constexpr std::uint16_t bits() const { return bits_; }

 private:
  std::uint16_t bits_;
};

/// IEEE binary16: 11 bits of precision, magnitudes up to 65504.
using half_t = narrow_float<binary16>;
/// bfloat16: 8 bits of precision, the range of float.
using bhalf_t = narrow_float<bfloat16>;

/// half_t and bhalf_t are numbers.
template <class Format>
inline constexpr bool is_extended_number<narrow_float<Format>> = true;

static_assert(sizeof(half_t) == 2 && FloatingElement<half_t>);
static_assert(sizeof(bhalf_t) == 2 && FloatingElement<bhalf_t>);

}  // namespace ferry
