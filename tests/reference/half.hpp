// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The 16-bit formats by Eigen and by exact arithmetic in double: what ferry's own conversions are compared
/// with.
namespace ferry_test::reference {

std::uint16_t eigen_half_bits(float value);
float eigen_half_value(std::uint16_t bits);
std::uint16_t eigen_bhalf_bits(float value);
float eigen_bhalf_value(std::uint16_t bits);

/// The bits of `value` rounded once, to nearest even: scaled by a power of two, rounded to an integer, scaled
/// back, all of which is exact in long double.
std::uint16_t half_bits_once(long double value);
std::uint16_t bhalf_bits_once(long double value);

}  // namespace ferry_test::reference
