// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Rounding to floating-point formats with few bits: `Mantissa` bits of the mantissa, and `Bias` of the
/// exponent. A magnitude is the bits of a float without its sign; a code is the bits of the number without
/// its sign, as if exponents had no upper end.
namespace ferry::detail {

template <int Mantissa, int Bias>
struct minifloat {
  static constexpr int lost_bits = 23 - Mantissa;          ///< of a normal number
  static constexpr int exponent_shift = 127 - Bias;        ///< between the two biases
  static constexpr int least_normal = exponent_shift + 1;  ///< the exponent field of a float

  /// The code of the nearest number, ties to even. Not for NaN.
  KOKKOS_FUNCTION static constexpr std::uint32_t nearest(std::uint32_t magnitude) {
    const int exponent = static_cast<int>(magnitude >> 23);
    if (exponent >= least_normal) {
      const auto rounded = magnitude + ((1u << (lost_bits - 1)) - 1u) + ((magnitude >> lost_bits) & 1u);
      return (rounded >> lost_bits) - (static_cast<std::uint32_t>(exponent_shift) << Mantissa);
    }
    // An addition to 2^23 times the least number rounds to its multiples.
    constexpr auto unit = bit_cast<float>(static_cast<std::uint32_t>(least_normal - Mantissa + 23) << 23);
    return bit_cast<std::uint32_t>(bit_cast<float>(magnitude) + unit) - bit_cast<std::uint32_t>(unit);
  }

  /// The code of one of the two neighbours. `random` is added to the bits that are lost, as a fraction of
  /// 2^32; a carry selects the larger one. Not for NaN.
  KOKKOS_FUNCTION static constexpr std::uint32_t at_random(std::uint32_t magnitude, std::uint32_t random) {
    const int exponent = static_cast<int>(magnitude >> 23);
    if (exponent >= least_normal)
      return ((magnitude + (random >> (32 - lost_bits))) >> lost_bits) -
             (static_cast<std::uint32_t>(exponent_shift) << Mantissa);
    if (exponent == 0) return 0;  // far less than a fraction of 2^-32 of the least number
    const int shift = lost_bits + least_normal - exponent;
    const std::uint64_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint64_t scaled = shift < 64 ? (mantissa << 32) >> shift : 0;
    const std::uint64_t lost = scaled & 0xffffffffu;
    return static_cast<std::uint32_t>((scaled >> 32) + ((lost + random) >> 32));
  }
};

}  // namespace ferry::detail
