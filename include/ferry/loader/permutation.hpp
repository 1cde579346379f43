// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ferry {

/// A pseudo-random permutation of [0, size), computed element by element and never stored: the shuffled order
/// of an epoch, for any number of samples. A pure function of size, seed and epoch, equal on every machine.
///
///   ferry::permutation order(samples, seed, epoch);
///   order(0), order(1), ...      // each number of [0, samples) once
///
/// It is a Feistel network of eight rounds on the smallest even number of bits that holds size - 1. Its keys
/// come from Philox, its round function from SplitMix64. Results of size or above are fed in again (cycle
/// walking; Black and Rogaway, "Ciphers with arbitrary finite domains", 2002), so an element takes fewer than
/// four passes on average. Thread-safe.
class permutation {
 public:
  /// Throws invalid_argument for a negative size.
  explicit permutation(std::int64_t size, std::uint64_t seed = 0, std::uint64_t epoch = 0);

  /// Number of elements.
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// The element at `position`, for positions in [0, size()): there is none in a permutation of nothing.
  [[nodiscard]] std::int64_t operator()(std::int64_t position) const;

 private:
  static constexpr std::size_t rounds = 8;

  [[nodiscard]] std::uint64_t mixed(std::uint64_t value) const;

  std::int64_t size_;
  int half_ = 1;  ///< bits of each half
  std::uint64_t mask_ = 0;
  std::array<std::uint64_t, rounds> keys_{};
};

}  // namespace ferry
