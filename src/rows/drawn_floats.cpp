// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/drawn_floats.hpp>

#include <ferry/memory/detail/backend.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <algorithm>
#include <cstdint>

// Loops over arrays of a fixed size, which compilers turn into vectors at -O3.
namespace ferry::random {

namespace {

template <class Values>
void draw_all(const Values& values, std::uint64_t position, std::int64_t count, float* target) {
  constexpr int blocks = 16, floats = 4 * blocks;
  const Values copy = values;  // `target` does not change it
  std::uint64_t block = position / 4;
  auto before = static_cast<std::int64_t>(position % 4);  // floats of the first block that others have
  while (count > 0) {
    std::uint32_t words[4][blocks], ordered[floats];
    for (int b = 0; b < blocks; ++b) {
      const philox_block drawn = block_of(copy.seed, block + static_cast<std::uint64_t>(b), copy.stream);
      for (int w = 0; w < 4; ++w) words[w][b] = drawn.word[w];
    }
    for (int b = 0; b < blocks; ++b)
      for (int w = 0; w < 4; ++w) ordered[4 * b + w] = words[w][b];
    float part[floats];
    for (int i = 0; i < floats; ++i) part[i] = copy.value(ordered[i]);
    const std::int64_t share = std::min<std::int64_t>(count, floats - before);
    std::copy_n(part + before, share, target);
    count -= share;
    target += share;
    block += blocks;
    before = 0;
  }
}

#if defined(__GNUC__) && defined(__x86_64__)
/// Compiled for processors with AVX2 and FMA because it is inlined. Without FMA the C library computes each.
template <class Values>
[[gnu::noinline, gnu::flatten, gnu::target("avx2,fma")]] void draw_by_vectors(const Values& values,
                                                                              std::uint64_t position,
                                                                              std::int64_t count,
                                                                              float* target) {
  draw_all(values, position, count, target);
}
#endif

template <class Values>
void draw_here(const Values& values, std::uint64_t position, std::int64_t count, float* target) {
#if defined(__GNUC__) && defined(__x86_64__)
  static const bool has_vectors = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                                  !ferry::detail::without("avx2");
  if (has_vectors) return draw_by_vectors(values, position, count, target);
#endif
  draw_all(values, position, count, target);
}

}  // namespace

void draw(const uniform_floats& values, std::uint64_t position, std::int64_t count, float* target) {
  draw_here(values, position, count, target);
}
void draw(const normal_floats& values, std::uint64_t position, std::int64_t count, float* target) {
  draw_here(values, position, count, target);
}

}  // namespace ferry::random
