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
template <class Format>
struct accumulation<narrow_float<Format>> {
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
