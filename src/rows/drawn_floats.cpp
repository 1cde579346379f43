// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/drawn_floats.hpp>

#include <ferry/memory/detail/without.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <algorithm>
#include <cstdint>
#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#endif

// Loops over arrays of a fixed size, which compilers turn into vectors at -O3.
namespace ferry::random {

namespace {

/// Blocks that one pass draws, and their floats.
constexpr int blocks = 16;
constexpr int floats = 4 * blocks;

std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((std::uint64_t{a} * b) >> 32);
}
/// Rounds of philox(). Recursive, so that compilers unroll them before they look for vectors.
template <int Rounds>
philox_block philox_rounds(const philox_block& c, std::uint32_t key0, std::uint32_t key1) {
  if constexpr (Rounds == 0) {
    return c;
  } else {
    constexpr std::uint32_t a = 0xD2511F53u, b = 0xCD9E8D57u;
    return philox_rounds<Rounds - 1>({{high_product(b, c.word[2]) ^ c.word[1] ^ key0, b * c.word[2],
                                       high_product(a, c.word[0]) ^ c.word[3] ^ key1, a * c.word[0]}},
                                     key0 + 0x9E3779B9u, key1 + 0xBB67AE85u);
  }
}

/// The words of blocks first, first + 1, ... in the order of the elements, by any processor.
struct portable_words {
  static void draw(std::uint64_t seed, std::uint64_t first, std::uint32_t stream,
                   std::uint32_t (&words)[floats]);
};
void portable_words::draw(std::uint64_t seed, std::uint64_t first, std::uint32_t stream,
                          std::uint32_t (&words)[floats]) {
  const auto low = static_cast<std::uint32_t>(first), high = static_cast<std::uint32_t>(first >> 32);
  const auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  std::uint32_t column[4][blocks];
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const std::uint32_t counter = low + b;
    const philox_block drawn =
        philox_rounds<10>({{counter, high + (counter < low ? 1u : 0u), stream, 0u}}, key0, key1);
    column[0][b] = drawn.word[0];
    column[1][b] = drawn.word[1];
    column[2][b] = drawn.word[2];
    column[3][b] = drawn.word[3];
  }
  for (int b = 0; b < blocks; ++b)
    for (int w = 0; w < 4; ++w) words[4 * b + w] = column[w][b];
}

void draw_floats(const uniform_floats& values, const std::uint32_t (&words)[floats], float* target) {
  const uniform_floats copy = values;  // `target` does not change it
  for (int i = 0; i < floats; ++i) target[i] = copy.value(words[i]);
}
/// Both branches of the quantile would cost more than the few that lie in a tail.
template <class Values>
void draw_floats(const Values& values, const std::uint32_t (&words)[floats], float* target) {
  const Values copy = values;
  float x[floats], w[floats];
  int tails = 0;
  for (int i = 0; i < floats; ++i) {
    const normal_place place = copy.place(words[i]);
    x[i] = place.x;
    w[i] = place.w;
    tails += place.is_in_tail() ? 1 : 0;
  }
  for (int i = 0; i < floats; ++i) target[i] = copy.scaled(normal_place{x[i], w[i]}.middle());
  if (tails == 0) return;
  for (int i = 0; i < floats; ++i) {
    const normal_place place{x[i], w[i]};
    if (place.is_in_tail()) target[i] = copy.scaled(place.tail());
  }
}

template <class Words, class Values>
void draw_all(const Values& values, std::uint64_t position, std::int64_t count, float* target) {
  std::uint32_t words[floats];
  std::uint64_t block = position / 4;
  auto before = static_cast<std::int64_t>(position % 4);  // floats of the first block that others have
  while (count > 0) {
    Words::draw(values.seed, block, Values::stream, words);
    if (before == 0 && count >= floats) {
      draw_floats(values, words, target);
    } else {
      float part[floats];
      draw_floats(values, words, part);
      std::copy_n(part + before, std::min<std::int64_t>(count, floats - before), target);
    }
    count -= floats - before;
    target += floats - before;
    block += blocks;
    before = 0;
  }
}

#if defined(__GNUC__) && defined(__x86_64__)
/// Words by AVX2. A lane of 64 bits has a word of its block below. Products ignore its upper half,
/// which therefore may hold anything.
struct avx2_words {
  [[gnu::target("avx2,fma")]] static void draw(std::uint64_t seed, std::uint64_t first, std::uint32_t stream,
                                               std::uint32_t (&words)[floats]) {
    constexpr int lanes = 4, groups = 2;
    const __m256i a = _mm256_set1_epi64x(0xD2511F53), b = _mm256_set1_epi64x(0xCD9E8D57);
    const __m256i step0 = _mm256_set1_epi64x(0x9E3779B9), step1 = _mm256_set1_epi64x(0xBB67AE85);
    for (int block = 0; block < blocks; block += groups * lanes) {
      __m256i c[groups][4];
      for (int g = 0; g < groups; ++g) {
        const auto counter = static_cast<long long>(first + static_cast<std::uint64_t>(block + g * lanes));
        c[g][0] = _mm256_add_epi64(_mm256_set1_epi64x(counter), _mm256_set_epi64x(3, 2, 1, 0));
        c[g][1] = _mm256_srli_epi64(c[g][0], 32);
        c[g][2] = _mm256_set1_epi64x(stream);
        c[g][3] = _mm256_setzero_si256();
      }
      __m256i key0 = _mm256_set1_epi64x(static_cast<long long>(seed));
      __m256i key1 = _mm256_srli_epi64(key0, 32);
      for (int round = 0; round < 10; ++round) {
        for (int g = 0; g < groups; ++g) {
          const __m256i product0 = _mm256_mul_epu32(a, c[g][0]), product2 = _mm256_mul_epu32(b, c[g][2]);
          c[g][0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product2, 32), c[g][1]), key0);
          c[g][1] = product2;
          c[g][2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), c[g][3]), key1);
          c[g][3] = product0;
        }
        key0 = _mm256_add_epi64(key0, step0);
        key1 = _mm256_add_epi64(key1, step1);
      }
      for (int g = 0; g < groups; ++g) {
        const __m256i front = _mm256_blend_epi32(c[g][0], _mm256_slli_epi64(c[g][1], 32), 0xAA);
        const __m256i back = _mm256_blend_epi32(c[g][2], _mm256_slli_epi64(c[g][3], 32), 0xAA);
        const __m256i even = _mm256_unpacklo_epi64(front, back), odd = _mm256_unpackhi_epi64(front, back);
        auto* const target = reinterpret_cast<__m256i*>(words + 4 * (block + g * lanes));
        _mm256_storeu_si256(target, _mm256_permute2x128_si256(even, odd, 0x20));
        _mm256_storeu_si256(target + 1, _mm256_permute2x128_si256(even, odd, 0x31));
      }
    }
  }
};

/// Compiled for processors with AVX2 and FMA because it is inlined. Without FMA the C library computes each.
template <class Values>
[[gnu::noinline, gnu::flatten, gnu::target("avx2,fma")]] void draw_by_vectors(const Values& values,
                                                                              std::uint64_t position,
                                                                              std::int64_t count,
                                                                              float* target) {
  draw_all<avx2_words>(values, position, count, target);
}
bool has_vectors() {
  static const bool answer = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                             !ferry::detail::without("avx2");
  return answer;
}
template <class Values>
void draw_here(const Values& values, std::uint64_t position, std::int64_t count, float* target) {
  has_vectors() ? draw_by_vectors(values, position, count, target)
                : draw_all<portable_words>(values, position, count, target);
}
#else
template <class Values>
void draw_here(const Values& values, std::uint64_t position, std::int64_t count, float* target) {
  draw_all<portable_words>(values, position, count, target);
}
#endif

}  // namespace

void draw(const uniform_floats& values, std::uint64_t position, std::int64_t count, float* target) {
  draw_here(values, position, count, target);
}
void draw(const normal_floats& values, std::uint64_t position, std::int64_t count, float* target) {
  draw_here(values, position, count, target);
}
void draw(const truncated_floats& values, std::uint64_t position, std::int64_t count, float* target) {
  draw_here(values, position, count, target);
}

}  // namespace ferry::random
