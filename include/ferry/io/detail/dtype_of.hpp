// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/dtype.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Complex.hpp>

#include <complex>
#include <type_traits>

namespace ferry::detail {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_complex<Kokkos::complex<T>> = true;

/// The type of ferry's elements. Enumerations, std::byte among them, are their integers; structs are records.
template <class T>
consteval dtype dtype_of() {
  if constexpr (std::is_const_v<T>)
    return dtype_of<std::remove_const_t<T>>();
  else if constexpr (std::is_enum_v<T>)
    return dtype_of<std::underlying_type_t<T>>();
  else if constexpr (std::is_same_v<T, bool>)
    return {dtype_kind::boolean, sizeof(T)};
  else if constexpr (std::is_integral_v<T>)
    return {std::is_signed_v<T> ? dtype_kind::integer : dtype_kind::unsigned_integer, sizeof(T)};
  else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, half_t>)
    return {dtype_kind::real, sizeof(T)};
  else if constexpr (std::is_same_v<T, bhalf_t>)
    return {dtype_kind::brain, sizeof(T)};
  else if constexpr (std::is_same_v<T, fp8_e4m3_t>)
    return {dtype_kind::e4m3, sizeof(T)};
  else if constexpr (std::is_same_v<T, fp8_e5m2_t>)
    return {dtype_kind::e5m2, sizeof(T)};
  else if constexpr (std::is_same_v<T, ue8m0_t>)
    return {dtype_kind::e8m0, sizeof(T)};
  else if constexpr (std::is_same_v<T, fp4_e2m1_pair_t>)
    return {dtype_kind::e2m1, sizeof(T)};
  else if constexpr (is_complex<T>)
    return {dtype_kind::complex, sizeof(T)};
  else
    return {dtype_kind::record, sizeof(T)};
}

}  // namespace ferry::detail
