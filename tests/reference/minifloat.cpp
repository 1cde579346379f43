// SPDX-License-Identifier: Apache-2.0
#include "reference/minifloat.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

namespace ferry_test::reference {

double magnitude_of(const minifloat& format, unsigned code) {
  const unsigned hidden = 1u << format.mantissa;
  const auto exponent = static_cast<int>(code >> format.mantissa);
  const unsigned mantissa = code & (hidden - 1u);
  if (exponent == 0) return std::ldexp(static_cast<double>(mantissa), 1 - format.bias - format.mantissa);
  return std::ldexp(static_cast<double>(hidden + mantissa), exponent - format.bias - format.mantissa);
}

unsigned nearest_code(const minifloat& format, long double magnitude) {
  for (unsigned code = 0; code <= format.largest; ++code) {
    const long double below = magnitude_of(format, code);
    const long double above = magnitude_of(format, code + 1u);
    if (magnitude <= below) return code;
    if (magnitude >= above) continue;
    const long double gap_below = magnitude - below;
    const long double gap_above = above - magnitude;
    if (gap_below != gap_above) return gap_below < gap_above ? code : code + 1u;
    return code % 2u == 0u ? code : code + 1u;
  }
  return format.largest + 1u;
}

unsigned nearest_power(long double magnitude) {
  for (int code = 0; code < 255; ++code)
    if (magnitude < std::ldexp(1.5L, code - 127)) return static_cast<unsigned>(code);
  return 255u;
}

std::uint8_t byte_of(byte_format format, long double value, bool saturates) {
  if (format == byte_format::e8m0) {
    if (std::isnan(value) || value < 0 || (!saturates && value == 0)) return 0xff;
    const unsigned code = nearest_power(value);
    return static_cast<std::uint8_t>(saturates && code == 255u ? 254u : code);
  }
  const bool five = format == byte_format::e5m2;
  const minifloat& layout = five ? e5m2_layout : e4m3_layout;
  const unsigned sign = std::signbit(value) ? 0x80u : 0u;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | (five ? 0x7eu : 0x7fu));
  const unsigned code = nearest_code(layout, std::fabs(value));
  const unsigned beyond = saturates ? layout.largest : five ? 0x7cu : 0x7fu;
  return static_cast<std::uint8_t>(sign | (code <= layout.largest ? code : beyond));
}

double value_of(byte_format format, std::uint8_t code) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (format == byte_format::e8m0) return code == 0xff ? nan : std::ldexp(1.0, code - 127);
  const bool five = format == byte_format::e5m2;
  const minifloat& layout = five ? e5m2_layout : e4m3_layout;
  const unsigned magnitude = code & 0x7fu;
  const double value = magnitude <= layout.largest  ? magnitude_of(layout, magnitude)
                       : five && magnitude == 0x7cu ? HUGE_VAL
                                                    : nan;
  return std::copysign(value, code >= 0x80 ? -1.0 : 1.0);
}

}  // namespace ferry_test::reference
