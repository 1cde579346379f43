// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/normal_quantile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Random floats, for elements of float, half_t and bhalf_t. Element p of an array takes word p % 4 of Philox
/// block p / 4. Each sum of a product is an fma, so hosts and devices compute the same bits.
namespace ferry::random {

/// The number of [least, most] next to one that is drawn.
KOKKOS_FORCEINLINE_FUNCTION float clamped(float drawn, float least, float most) {
  const float raised = drawn < least ? least : drawn;
  return raised > most ? most : raised;
}

/// Uniform floats: middle + u half with u in [-1, 1), a multiple of 2^-23, and then inside of [least, most].
struct uniform_floats {
  std::uint64_t seed;
  float middle, half, least, most;
  static constexpr std::uint32_t stream = 2;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float value(std::uint32_t word) const {
    const float u = static_cast<float>(static_cast<std::int32_t>(word) >> 8) * 0x1p-23f;
    return clamped(Kokkos::fma(u, half, middle), least, most);
  }
};

/// Normal floats of [least, most]: the places from `first` on, `count` of them; 0 means all 2^32.
struct normal_floats {
  std::uint64_t seed;
  float mean, deviation, least, most;
  std::int32_t first;
  std::uint32_t count;
  std::uint32_t stream;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float value(std::uint32_t word) const {
    const auto part = static_cast<std::uint32_t>((std::uint64_t{count} * word) >> 32);
    const std::uint32_t place = static_cast<std::uint32_t>(first) + (count == 0 ? word : part);
    const float quantile = normal_quantile_at(static_cast<std::int32_t>(place));
    return clamped(Kokkos::fma(deviation, quantile, mean), least, most);
  }
};

/// target[i] = the value of element position + i for i in [0, count), in the calling thread, by the
/// processor's vectors.
/// @{
void draw(const uniform_floats& values, std::uint64_t position, std::int64_t count, float* target);
void draw(const normal_floats& values, std::uint64_t position, std::int64_t count, float* target);
/// @}

}  // namespace ferry::random
