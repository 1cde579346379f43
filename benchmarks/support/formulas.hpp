// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Contents that can be computed from their place, so that a check needs no second table. Integer arithmetic
/// up to one exact scaling: host and device agree on every bit.
namespace ferry_bench {

/// Spreads 64 bits over 64 bits, one to one.
KOKKOS_FUNCTION constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  x ^= x >> 32;
  return x;
}

/// Element (row, column) of a table of `width` columns: in [0, 1), multiples of 2^-24. A table that is looked
/// at with another width holds the formula of that width, because only the row-major position counts.
struct element_value {
  std::int64_t width;
  std::uint64_t salt = 0;

  KOKKOS_FUNCTION float operator()(std::int64_t row, std::int64_t column) const {
    const auto place = static_cast<std::uint64_t>(row * width + column);
    return static_cast<float>(mix(place + (salt << 48)) >> 40) * 0x1p-24F;
  }
};

/// A value that no formula gives.
struct poison_value {
  KOKKOS_FUNCTION float operator()(std::int64_t, std::int64_t) const { return -1.0F; }
};

/// Random rows, some of them more than once.
struct any_row {
  std::uint64_t seed;
  std::uint64_t rows;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t) const {
    return static_cast<std::int64_t>(mix(mix(seed) + static_cast<std::uint64_t>(position)) % rows);
  }
};

/// Random rows, each at most once: a permutation of the next power of two, walked until it hits a row.
/// Multiplying by an odd number, adding, and folding the upper half onto the lower can all be undone, so the
/// rounds are a permutation.
struct distinct_row {
  std::uint64_t seed;
  std::uint64_t rows;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t) const {
    int bits = 2;
    while (bits < 63 && (std::uint64_t{1} << bits) < rows) ++bits;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const int fold = bits / 2 + 1;
    auto x = static_cast<std::uint64_t>(position);
    do {
      for (std::uint64_t round = 0; round < 4; ++round) {
        x = (x * 0x9FB21C651E98DF25ull + mix(seed + (round << 32))) & mask;
        x ^= x >> (fold < bits ? fold : 1);
      }
    } while (x >= rows);
    return static_cast<std::int64_t>(x);
  }
};

}  // namespace ferry_bench
