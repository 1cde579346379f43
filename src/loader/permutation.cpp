// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/loader/permutation.hpp>

#include <ferry/error.hpp>

#include <bit>
#include <string>
#include <utility>

namespace ferry {

permutation::permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) : size_(size) {
  if (size < 0)
    throw invalid_argument("ferry::permutation: the size is " + std::to_string(size) + ", must be >= 0");
  const auto last = static_cast<std::uint64_t>(size > 0 ? size - 1 : 0);
  half_ = (static_cast<int>(std::bit_width(last)) + 1) / 2;
  if (half_ == 0) half_ = 1;
  mask_ = (std::uint64_t{1} << half_) - 1;
  for (std::size_t round = 0; round < rounds; round += 2) {
    // Another stream of the seed than those of initial values.
    const auto bits = random::block_of(seed, epoch, static_cast<std::uint32_t>(0x70726d00u + round));
    keys_[round] = std::uint64_t{bits.word[0]} << 32 | bits.word[1];
    keys_[round + 1] = std::uint64_t{bits.word[2]} << 32 | bits.word[3];
  }
}

std::int64_t permutation::operator()(std::int64_t position) const {
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = mixed(value);
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

std::uint64_t permutation::mixed(std::uint64_t value) const {
  std::uint64_t left = value >> half_;
  std::uint64_t right = value & mask_;
  for (const std::uint64_t key : keys_) {
    // The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), which is enough to mix a half.
    std::uint64_t bits = right + key;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    bits ^= bits >> 31;
    left ^= bits & mask_;
    std::swap(left, right);
  }
  return left << half_ | right;
}

}  // namespace ferry
