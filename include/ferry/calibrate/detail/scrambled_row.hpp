// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// A pseudo-random permutation of [0, 2^bits): the row of each position, without repetitions. Multiplication
/// by an odd number, addition, and folding the upper half onto the lower are invertible, so every round is a
/// permutation.
struct scrambled_row {
  std::uint64_t seed;
  int bits;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t) const {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    auto x = static_cast<std::uint64_t>(position) & mask;
    for (std::uint64_t round = 1; round <= 3; ++round) {
      x = (x * 0x9FB21C651E98DF25ull + seed * round) & mask;
      x ^= x >> (bits / 2 + 1);
    }
    return static_cast<std::int64_t>(x);
  }
};

}  // namespace ferry::kernels
