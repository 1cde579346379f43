// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Core.hpp>

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

/// Quotients by one step that is neither subnormal nor huge, on devices: a division takes more instructions
/// than the rest of a code. A product by the reciprocal, corrected by its exact remainder, has the same bits
/// (Markstein, IBM Journal of Research and Development 34, 1990).
class step_quotients {
 public:
  KOKKOS_FORCEINLINE_FUNCTION explicit step_quotients(float step)
      : step_(step), inverse_(1.0f / step), is_middle_(step > 0x1p-60f && step < 0x1p60f) {}

  /// quotient[e] = quotient(value[e], step), or returns false if remainders might not be exact.
  KOKKOS_FORCEINLINE_FUNCTION bool of_four(const float (&value)[4], float (&quotient)[4]) const {
    // Also false for NaN and infinity.
    const bool is_middle =
        Kokkos::fabs(value[0]) + Kokkos::fabs(value[1]) + Kokkos::fabs(value[2]) + Kokkos::fabs(value[3]) <
        0x1p60f;
    if (!is_middle_ || !is_middle) return false;
    for (int e = 0; e < 4; ++e) {
      const float rough = value[e] * inverse_;
      const float estimate = Kokkos::fma(Kokkos::fma(-rough, step_, value[e]), inverse_, rough);
      quotient[e] = with_sign_of(value[e], bit_cast<std::uint32_t>(estimate) & 0x7fffffffu);  // also of zero
    }
    return true;
  }

 private:
  float step_;
  float inverse_;
  bool is_middle_;
};

}  // namespace ferry::detail
