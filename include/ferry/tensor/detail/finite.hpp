// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

/// Tests for infinities and NaN by their bits. With -ffast-math a compiler may assume that numbers are finite
/// and remove isfinite(x), x != x and comparisons with the largest number. It keeps integer arithmetic.
namespace ferry::detail {

/// An unsigned integer with the bits of a float or double.
template <class T>
using bits_of_number = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
inline constexpr bits_of_number<T> exponent_bits =
    sizeof(T) == 4 ? static_cast<bits_of_number<T>>(0x7f800000u)
                   : static_cast<bits_of_number<T>>(0x7ff0000000000000ull);
template <class T>
inline constexpr bits_of_number<T> sign_bit = bits_of_number<T>{1} << (8 * sizeof(T) - 1);

/// The bits of |value|. They grow with the magnitude; infinity has exponent_bits, a NaN has more.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION constexpr bits_of_number<T> magnitude_bits(const T& value) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  return bit_cast<bits_of_number<T>>(value) & ~sign_bit<T>;
}

/// The float or double behind a number, by conversions that compute with bits; integers as they are.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION constexpr auto plain_number_of(const T& value) {
  if constexpr (WrappedNumber<T>)
    return static_cast<typename T::plain_number>(value);
  else if constexpr (is_extended_number<T> || is_byte_float<T>)
    return static_cast<float>(value);
  else
    return value;
}

/// True if a number is finite; integers are.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION constexpr bool is_finite(const T& value) {
  if constexpr (std::is_integral_v<T>)
    return true;
  else
    return magnitude_bits(plain_number_of(value)) < exponent_bits<decltype(plain_number_of(value))>;
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION constexpr bool is_nan(const T& value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return magnitude_bits(plain_number_of(value)) > exponent_bits<decltype(plain_number_of(value))>;
}

/// True if the sign is set, also that of a zero or NaN.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION constexpr bool is_negative(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return value < T(0);
  } else {
    using number = decltype(plain_number_of(value));
    return (bit_cast<bits_of_number<number>>(plain_number_of(value)) & sign_bit<number>) != 0u;
  }
}

}  // namespace ferry::detail
