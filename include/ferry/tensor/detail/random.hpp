// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

/// Counter-based random numbers. A value is a pure function of seed and position, independent of the number
/// of threads and of the backend. Every rounding below is fixed, so host and device give the same bits: fma
/// where a compiler might contract, otherwise operations that can't be contracted.
namespace ferry::random {

struct philox_block {
  std::uint32_t word[4];
};

/// Philox4x32 with `Rounds` rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
/// Recursive, so that a host's compiler unrolls it before it looks for vectors, of products of 32 bits.
template <int Rounds>
KOKKOS_FORCEINLINE_FUNCTION constexpr philox_block philox(const philox_block& counter, std::uint32_t key0,
                                                          std::uint32_t key1) {
  if constexpr (Rounds == 0) {
    return counter;
  } else {
    constexpr std::uint32_t a = 0xD2511F53u, b = 0xCD9E8D57u;
    const auto high_a = static_cast<std::uint32_t>((std::uint64_t{a} * counter.word[0]) >> 32);
    const auto high_b = static_cast<std::uint32_t>((std::uint64_t{b} * counter.word[2]) >> 32);
    return philox<Rounds - 1>({{high_b ^ counter.word[1] ^ key0, b * counter.word[2],
                                high_a ^ counter.word[3] ^ key1, a * counter.word[0]}},
                              key0 + 0x9E3779B9u, key1 + 0xBB67AE85u);
  }
}
KOKKOS_FORCEINLINE_FUNCTION constexpr philox_block philox(const philox_block& counter, std::uint64_t seed) {
  return philox<10>(counter, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
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

/// Uniform in [low, high).
KOKKOS_FUNCTION inline double uniform(std::uint64_t seed, std::uint64_t position, double low, double high) {
  const philox_block random = block_of(seed, position, 0);
  return Kokkos::fma(unit(random.word[0], random.word[1]), high - low, low);
}

}  // namespace ferry::random
