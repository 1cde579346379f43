// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/interop/detail/dlpack_abi.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Complex.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

template <class T>
inline constexpr bool is_complex_number = false;
template <class T>
inline constexpr bool is_complex_number<std::complex<T>> = true;
template <class T>
inline constexpr bool is_complex_number<Kokkos::complex<T>> = true;

/// The kind of number that T is, in DLPack's codes; opaque if T is no number.
template <class T>
consteval DLDataTypeCode dlpack_code() {
  using plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<plain, bool>)
    return kDLBool;
  else if constexpr (std::is_same_v<plain, bhalf_t>)
    return kDLBfloat;
  else if constexpr (std::is_same_v<plain, half_t> || std::is_floating_point_v<plain>)
    return kDLFloat;
  else if constexpr (std::is_integral_v<plain>)
    return std::is_signed_v<plain> ? kDLInt : kDLUInt;
  else if constexpr (is_complex_number<plain>)
    return kDLComplex;
  else
    return kDLOpaqueHandle;
}

/// The type of an element, for DLPack.
template <class T>
consteval DLDataType dlpack_type() {
  static_assert(
      dlpack_code<T>() != kDLOpaqueHandle && sizeof(T) <= 16,
      "ferry: DLPack describes numbers, bool and complex numbers only, no structs; give a view of the struct's numbers, or of its bytes.");
  return {static_cast<std::uint8_t>(dlpack_code<T>()), static_cast<std::uint8_t>(8 * sizeof(T)), 1};
}

/// "float32"; with lanes "float32 x 4 lanes".
std::string dlpack_type_text(DLDataType type);

/// "[3 x 4]"
std::string numbers_text(const std::int64_t* numbers, std::int32_t count);

}  // namespace ferry::detail
