// SPDX-License-Identifier: Apache-2.0
#include "reference/random.hpp"

#include <algorithm>
#include <cmath>

namespace ferry_test::reference {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = 0xD2511F53ull * counter[0];
    const std::uint64_t right = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<std::uint32_t>(right / 0x100000000ull) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right % 0x100000000ull),
               static_cast<std::uint32_t>(left / 0x100000000ull) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left % 0x100000000ull)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

namespace {

std::array<std::uint32_t, 4> words_of(std::uint64_t seed, std::uint64_t position, std::uint32_t stream) {
  return philox4x32(
      {static_cast<std::uint32_t>(position % 0x100000000ull),
       static_cast<std::uint32_t>(position / 0x100000000ull), stream, 0u},
      {static_cast<std::uint32_t>(seed % 0x100000000ull), static_cast<std::uint32_t>(seed / 0x100000000ull)});
}

/// The upper 53 of 64 bits, as a fraction.
double fraction(std::uint32_t high, std::uint32_t low) {
  return std::ldexp(static_cast<double>(high), -32) + std::ldexp(static_cast<double>(low >> 11), -53);
}

/// The number that a normal one exceeds with a probability of at most a half, by bisection.
double quantile_above(double above) {
  double low = 0.0, high = 9.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2.0;
    (std::erfc(middle / std::sqrt(2.0)) / 2.0 > above ? low : high) = middle;
  }
  return low;
}

}  // namespace

double uniform_unit(std::uint64_t seed, std::uint64_t position) {
  const auto words = words_of(seed, position, 0);
  return fraction(words[0], words[1]);
}

double standard_normal(std::uint64_t seed, std::uint64_t position) {
  const auto words = words_of(seed, position, 1);
  // The middles of 2^53 cells; the last one rounds to 1, which has no quantile.
  const double p = fraction(words[0], words[1]) + std::ldexp(1.0, -54);
  return p < 0.5 ? -quantile_above(p) : quantile_above(std::max(1.0 - p, std::ldexp(1.0, -53)));
}

double signed_unit(std::uint64_t seed, std::uint64_t position) {
  const double word = words_of(seed, position / 4, 2)[position % 4];
  return std::floor((word < 0x1p31 ? word : word - 0x1p32) / 256.0) / 8388608.0;
}

double normal_of_word(std::uint64_t seed, std::uint64_t position) {
  const auto word = static_cast<std::int64_t>(words_of(seed, position / 4, 3)[position % 4]);
  const std::int64_t place = word < 0x80000000 ? word : word - 0x100000000;
  return normal_quantile(static_cast<std::int32_t>(place % 2 == 0 ? place + 1 : place));
}

double normal_quantile(std::int32_t place) {
  // The upper tail, where a probability has all its digits.
  const double value = quantile_above((0x1p31 - std::abs(static_cast<double>(place))) / 0x1p32);
  return place < 0 ? -value : value;
}

}  // namespace ferry_test::reference
