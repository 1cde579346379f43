// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/random.hpp>

#include <cstdint>

/// Every random decision is a pure function of the seed, a purpose and a position: it depends neither on the
/// order in which things happen nor on threads or backend.
namespace skipgram {

/// Streams 0 and 1 of a seed belong to ferry::init. Epochs count from 1; epoch 0 is for what all epochs
/// share.
enum class purpose : std::uint32_t { shuffle = 2, keep_and_window, hold_out, noise, noise_of_held_out };

KOKKOS_FUNCTION constexpr ferry::random::philox_block random_bits(std::uint64_t seed, purpose use,
                                                                  std::uint64_t epoch,
                                                                  std::uint64_t position) {
  return ferry::random::block_of(seed, position,
                                 static_cast<std::uint32_t>(epoch * 16) + static_cast<std::uint32_t>(use));
}

/// Uniform in [0, bound), bound < 2^32.
KOKKOS_FUNCTION constexpr std::uint32_t below(std::uint32_t bits, std::uint64_t bound) {
  return static_cast<std::uint32_t>(bits * bound >> 32);
}

/// Which pairs of words are withheld from training, as text and as noise alike: they are only ever ranked,
/// and among each other. Both orders of the two words fall on the same side.
struct hold_out {
  std::uint64_t seed;
  double share;

  KOKKOS_FUNCTION constexpr bool operator()(std::int32_t a, std::int32_t b) const {
    const auto low = static_cast<std::uint64_t>(a < b ? a : b);
    const auto high = static_cast<std::uint64_t>(a < b ? b : a);
    const auto random = random_bits(seed, purpose::hold_out, 0, high << 32 | low);
    return ferry::random::unit(random.word[0], random.word[1]) < share;
  }
};

}  // namespace skipgram
