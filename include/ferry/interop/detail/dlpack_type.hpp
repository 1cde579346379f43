// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/interop/detail/dlpack_abi.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>
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

/// DLPack's codes of numbers of 8 and 4 bits, which its version 1.0 does not name.
/// @{
inline constexpr std::uint8_t dlpack_e4m3 = 10;
inline constexpr std::uint8_t dlpack_e5m2 = 12;
inline constexpr std::uint8_t dlpack_e8m0 = 14;
inline constexpr std::uint8_t dlpack_e2m1 = 17;
/// @}

/// The kind of number that T is, in DLPack's codes; opaque if T is no number.
template <class T>
consteval std::uint8_t dlpack_code() {
  using plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<plain, bool>)
    return kDLBool;
  else if constexpr (std::is_same_v<plain, bhalf_t>)
    return kDLBfloat;
  else if constexpr (std::is_same_v<plain, fp8_e4m3_t>)
    return dlpack_e4m3;
  else if constexpr (std::is_same_v<plain, fp8_e5m2_t>)
    return dlpack_e5m2;
  else if constexpr (std::is_same_v<plain, ue8m0_t>)
    return dlpack_e8m0;
  else if constexpr (std::is_same_v<plain, fp4_e2m1_pair_t>)
    return dlpack_e2m1;
  else if constexpr (std::is_same_v<plain, half_t> || std::is_floating_point_v<plain>)
    return kDLFloat;
  else if constexpr (std::is_integral_v<plain>)
    return std::is_signed_v<plain> ? kDLInt : kDLUInt;
  else if constexpr (is_complex_number<plain>)
    return kDLComplex;
  else
    return kDLOpaqueHandle;
}

/// The type of an element, for DLPack. A pair of 4-bit numbers is a vector of two lanes, as PyTorch's
/// float4_e2m1fn_x2.
template <class T>
consteval DLDataType dlpack_type() {
  static_assert(
      dlpack_code<T>() != kDLOpaqueHandle && sizeof(T) <= 16,
      "ferry: DLPack describes numbers, bool and complex numbers only, no structs; give a view of the struct's numbers, or of its bytes.");
  constexpr int lanes = dlpack_code<T>() == dlpack_e2m1 ? 2 : 1;
  return {dlpack_code<T>(), static_cast<std::uint8_t>(8 * sizeof(T) / lanes), lanes};
}

/// "float32"; with lanes "float32 x 4 lanes".
std::string dlpack_type_text(DLDataType type);

/// "[3 x 4]"
std::string numbers_text(const std::int64_t* numbers, std::int32_t count);

}  // namespace ferry::detail
