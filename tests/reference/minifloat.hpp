// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Floating-point formats of few bits, by a search among all of their numbers: what ferry's own conversions
/// are compared with.
namespace ferry_test::reference {

/// A format with a sign in front of exponent and mantissa.
struct minifloat {
  int mantissa;      ///< bits
  int bias;          ///< of the exponent
  unsigned largest;  ///< the code of the largest number
};

inline constexpr minifloat e4m3_layout{3, 7, 0x7e};
inline constexpr minifloat e5m2_layout{2, 15, 0x7b};
inline constexpr minifloat e2m1_layout{1, 1, 0x7};

/// The magnitude of a code without its sign, exactly; codes above the largest one go on as if exponents had
/// no end.
double magnitude_of(const minifloat& format, unsigned code);

/// The code of the number nearest to a magnitude, the even one of two; one above the largest code for what
/// rounds beyond the largest number, infinity among it.
unsigned nearest_code(const minifloat& format, long double magnitude);

/// The code of the power of two nearest to a magnitude, from 0 for 2^-127 to 255 for 2^128 and more; of two
/// the larger one.
unsigned nearest_power(long double magnitude);

/// The formats of 8 bits.
enum class byte_format { e4m3, e5m2, e8m0 };

/// The code of a number; what rounds beyond the largest number saturates, or becomes NaN or, of e5m2, infinity.
std::uint8_t byte_of(byte_format format, long double value, bool saturates = true);

/// The value of a code.
double value_of(byte_format format, std::uint8_t code);

}  // namespace ferry_test::reference
