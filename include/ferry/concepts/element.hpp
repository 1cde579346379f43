// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

namespace ferry {

/// An element of a tensor: any trivially copyable object. Verbs that only move rows need no more.
template <class T>
concept Element = std::is_trivially_copyable_v<std::remove_const_t<T>> && std::is_object_v<T>;

/// True if T is a number type that std::is_arithmetic does not cover. Specialised for half_t and bhalf_t.
template <class T>
inline constexpr bool is_extended_number = false;

/// Numbers other than bool: elements that verbs add, scale and convert into each other.
template <class T>
concept NumberElement = Element<T> &&
    (std::is_arithmetic_v<T> ||
     is_extended_number<std::remove_const_t<T>>)&&!std::same_as<std::remove_const_t<T>, bool>;

/// Floating-point numbers: the elements of optimizer tables and their state.
template <class T>
concept FloatingElement = NumberElement<T> &&
    (std::is_floating_point_v<std::remove_const_t<T>> || is_extended_number<std::remove_const_t<T>>);

/// True for floating-point numbers of 8 bits. Specialised for fp8_e4m3_t, fp8_e5m2_t and ue8m0_t.
template <class T>
inline constexpr bool is_byte_float = false;

/// Elements with a value: numbers, and floating-point numbers of 8 bits. Verbs convert all of them into each
/// other, but do not compute with the latter, which are no NumberElement.
template <class T>
concept ValueElement = NumberElement<T> ||(Element<T>&& is_byte_float<std::remove_const_t<T>>);

/// Row indices: 32 or 64 bits, signed or unsigned.
template <class T>
concept IndexElement =
    std::integral<T> && !std::same_as<std::remove_const_t<T>, bool> && (sizeof(T) == 4 || sizeof(T) == 8);

}  // namespace ferry
