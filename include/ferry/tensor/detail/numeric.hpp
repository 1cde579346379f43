// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {
template <class T>
struct accumulation {
  using type = T;
};
template <class T>
  requires(is_extended_number<T> || is_byte_float<T>)
struct accumulation<T> {
  using type = float;
};
template <class T>
  requires std::is_integral_v<T>
struct accumulation<T> {
  using type = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
};
}  // namespace detail

/// The type in which values of type T are summed: float for the 8-bit and 16-bit formats, 64 bits for
/// integers, else T.
template <class T>
using accumulation_t = typename detail::accumulation<std::remove_const_t<T>>::type;

namespace detail {
/// A backend's wrapper of a number, with its own arithmetic.
template <class T>
concept WrappedNumber = requires {
  typename T::plain_number;
};

/// True of float, also wrapped.
template <class T>
inline constexpr bool is_float_number = std::is_same_v<T, float>;
template <WrappedNumber T>
inline constexpr bool is_float_number<T> = std::is_same_v<typename T::plain_number, float>;
}  // namespace detail

/// Converts between element types as static_cast; half_t, bhalf_t and numbers of 8 bits convert like float.
template <class To, class From>
KOKKOS_FUNCTION constexpr To convert(const From& value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (detail::WrappedNumber<From>)
    return convert<To>(static_cast<typename From::plain_number>(value));
  else if constexpr (detail::WrappedNumber<To>)
    return To(convert<typename To::plain_number>(value));
  else if constexpr (is_extended_number<From> || is_byte_float<From>)
    return convert<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

/// Elements that convert<To, From> accepts.
template <class To, class From>
concept ConvertibleElement = std::same_as<std::remove_const_t<To>, std::remove_const_t<From>> ||
    (ValueElement<To>&& ValueElement<From>);

}  // namespace ferry

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
