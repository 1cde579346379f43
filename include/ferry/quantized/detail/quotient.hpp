// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

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

}  // namespace ferry::detail
