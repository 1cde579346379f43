// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

/// Counter-based random numbers. A value is a pure function of seed and position, independent of the number
/// of threads and of the backend. Every rounding below is fixed, so host and device give the same bits: fma
/// where a compiler might contract, otherwise operations that can't be contracted.
namespace ferry::random {

struct philox_block {
  std::uint32_t word[4];
};

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
KOKKOS_FUNCTION constexpr philox_block philox(philox_block counter, std::uint64_t seed) {
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(b),
                static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The 128 random bits of element `position`; `stream` separates uses of one seed.
KOKKOS_FUNCTION constexpr philox_block block_of(std::uint64_t seed, std::uint64_t position,
                                                std::uint32_t stream) {
  return philox(
      {{static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32), stream, 0u}}, seed);
}

/// A number of 53 bits in [0, 1).
KOKKOS_FUNCTION constexpr double unit(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

namespace detail {

/// c[0] + c[1] x + ... by Horner's scheme, every operation an fma.
template <int N>
KOKKOS_FUNCTION double polynomial(const double (&c)[N], double x) {
  double value = c[N - 1];
  for (int i = N - 2; i >= 0; --i) value = Kokkos::fma(value, x, c[i]);
  return value;
}

/// log(x) for normal x > 0: x = m 2^e with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m - 1) / (m + 1)).
KOKKOS_FUNCTION inline double log_of(double x) {
  // Constants, because a device would divide for each number.
  constexpr double odd_inverse[] = {1.0,        1.0 / 3.0,  1.0 / 5.0,  1.0 / 7.0,  1.0 / 9.0,  1.0 / 11.0,
                                    1.0 / 13.0, 1.0 / 15.0, 1.0 / 17.0, 1.0 / 19.0, 1.0 / 21.0, 1.0 / 23.0};
  auto bits = ferry::detail::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double mantissa = ferry::detail::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double series = polynomial(odd_inverse, s * s);
  constexpr double ln2 = 0.6931471805599453;
  return Kokkos::fma(static_cast<double>(exponent), ln2, 2.0 * s * series);
}

/// +-1 / degree!, rounded after each division.
KOKKOS_FUNCTION constexpr double taylor_coefficient(int degree) {
  double inverse = degree / 2 % 2 == 0 ? 1.0 : -1.0;
  for (int factor = 2; factor <= degree; ++factor) inverse /= factor;
  return inverse;
}

/// cos(2 pi u) for u in [0, 1), from the Taylor series on an eighth of the circle.
KOKKOS_FUNCTION inline double cos_of_turn(double u) {
  constexpr double of_cosine[] = {taylor_coefficient(0),  taylor_coefficient(2),  taylor_coefficient(4),
                                  taylor_coefficient(6),  taylor_coefficient(8),  taylor_coefficient(10),
                                  taylor_coefficient(12), taylor_coefficient(14), 1.0 / 20922789888000.0};
  constexpr double of_sine[] = {taylor_coefficient(1),  taylor_coefficient(3),  taylor_coefficient(5),
                                taylor_coefficient(7),  taylor_coefficient(9),  taylor_coefficient(11),
                                taylor_coefficient(13), taylor_coefficient(15), 1.0 / 355687428096000.0};
  constexpr int last = 8;
  const double folded = u > 0.5 ? 1.0 - u : u;          // cos is even about a half turn
  const bool flip = folded > 0.25;                      // and odd about a quarter turn
  const double quarter = flip ? 0.5 - folded : folded;  // [0, 1/4]
  constexpr double two_pi = 6.283185307179586;
  const bool near_axis = quarter <= 0.125;  // else the sine of the complement
  const double x = (near_axis ? quarter : 0.25 - quarter) * two_pi;
  const double x2 = x * x;
  // One series of chosen coefficients, so that neighbouring threads of a device stay together.
  double value = near_axis ? of_cosine[last] : of_sine[last];
  for (int i = last - 1; i >= 0; --i) value = Kokkos::fma(value, x2, near_axis ? of_cosine[i] : of_sine[i]);
  if (!near_axis) value *= x;
  return flip ? -value : value;
}

}  // namespace detail

/// Uniform in [low, high).
KOKKOS_FUNCTION inline double uniform(std::uint64_t seed, std::uint64_t position, double low, double high) {
  const philox_block random = block_of(seed, position, 0);
  return Kokkos::fma(unit(random.word[0], random.word[1]), high - low, low);
}

/// Normal, by one number of the pair of Box and Muller (1958).
KOKKOS_FUNCTION inline double normal(std::uint64_t seed, std::uint64_t position, double mean,
                                     double deviation) {
  const philox_block random = block_of(seed, position, 1);
  const double radius = 1.0 - unit(random.word[0], random.word[1]);  // (0, 1]
  const double turn = unit(random.word[2], random.word[3]);
  const double value = Kokkos::sqrt(-2.0 * detail::log_of(radius)) * detail::cos_of_turn(turn);
  return Kokkos::fma(value, deviation, mean);
}

}  // namespace ferry::random
