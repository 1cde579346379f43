// SPDX-License-Identifier: Apache-2.0
#include "reference/half.hpp"

#include <Eigen/Core>

#include <cmath>

namespace ferry_test::reference {

namespace {

/// Rounded to a format of `digits` significant bits whose smallest normal number is 2^lowest; `limit` and
/// above is infinite.
double round_once(long double value, int digits, int lowest, long double limit) {
  if (std::isnan(value) || value == 0.0L || std::isinf(value)) return static_cast<double>(value);
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent - 1), 2^exponent)
  const int quantum = (exponent - 1 < lowest ? lowest : exponent - 1) - (digits - 1);
  const long double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::fabs(rounded) >= limit) return std::copysign(HUGE_VAL, static_cast<double>(value));
  return std::copysign(static_cast<double>(rounded), static_cast<double>(value));
}

}  // namespace

std::uint16_t eigen_half_bits(float value) { return Eigen::half(value).x; }
float eigen_half_value(std::uint16_t bits) {
  return Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits));
}
std::uint16_t eigen_bhalf_bits(float value) { return Eigen::bfloat16(value).value; }
float eigen_bhalf_value(std::uint16_t bits) {
  return Eigen::bfloat16_impl::bfloat16_to_float(Eigen::bfloat16_impl::raw_uint16_to_bfloat16(bits));
}

std::uint16_t half_bits_once(long double value) {
  return eigen_half_bits(static_cast<float>(round_once(value, 11, -14, 65536.0L)));
}
std::uint16_t bhalf_bits_once(long double value) {
  return eigen_bhalf_bits(static_cast<float>(round_once(value, 8, -126, std::ldexp(1.0L, 128))));
}

}  // namespace ferry_test::reference
