// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

/// Random floats, for elements of float, half_t and bhalf_t. Element p of an array takes word p % 4 of Philox
/// block p / 4. Each sum of a product is an fma, so hosts and devices compute the same bits.
namespace ferry::random {

namespace detail {

/// c[0] + c[1] x + ... by Horner's scheme. Recursive, so that compilers unroll it before they look for
/// vectors.
template <int First, int N>
KOKKOS_FORCEINLINE_FUNCTION float polynomial_from(const float (&c)[N], float x, float value) {
  if constexpr (First < 0)
    return value;
  else
    return polynomial_from<First - 1>(c, x, Kokkos::fma(value, x, c[First]));
}
template <int N>
KOKKOS_FORCEINLINE_FUNCTION float polynomial(const float (&c)[N], float x) {
  return polynomial_from<N - 2>(c, x, c[N - 1]);
}

}  // namespace detail

/// The quantile of the standard normal distribution at one of 2^31 equally likely places, symmetric about 0:
/// x = 2 p - 1 is an odd multiple of 2^-31. As in M. Giles, "Approximating the erfinv function" (2011), the
/// quantile is x times a polynomial of w = -log(1 - x^2). Its relative error is below 3e-7, and its largest
/// value is 6.23.
struct normal_place {
  float x;
  float w;

  /// The quantile is middle() up to here, and tail() above. A 300th of the places lie there.
  static constexpr float tail_begin = 5.0f;

  /// The lowest bit of `place` does not count.
  KOKKOS_FORCEINLINE_FUNCTION static normal_place of_word(std::int32_t place) {
    constexpr float c[] = {0.9999999681f, -0.5000037506f, 0.3333460602f, -0.2496890696f,
                           0.1991334788f, -0.1727820607f, 0.1612624791f, -0.09895350737f};
    const std::int32_t odd = place | 1;
    const std::int32_t to_end =
        static_cast<std::int32_t>(0x80000000u - static_cast<std::uint32_t>(odd < 0 ? -odd : odd));
    const float q = static_cast<float>(to_end) * 0x1p-31f;  // 1 - |x|, with all its digits
    const float rest = q * (2.0f - q);                      // 1 - x^2
    // rest = m 2^exponent with m in [sqrt(1/2), sqrt(2))
    const auto bits = ferry::detail::bit_cast<std::int32_t>(rest);
    const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
    const float m = ferry::detail::bit_cast<float>(static_cast<std::int32_t>(
        static_cast<std::uint32_t>(bits) - (static_cast<std::uint32_t>(exponent) << 23)));
    const float f = m - 1.0f;
    const float logarithm = f * detail::polynomial(c, f);  // of m
    constexpr float ln2 = 0.693147181f;
    return {static_cast<float>(odd) * 0x1p-31f, Kokkos::fma(-static_cast<float>(exponent), ln2, -logarithm)};
  }

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool is_in_tail() const { return !(w < tail_begin); }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float middle() const {
    constexpr float c[] = {2.12331348f,      0.3488020277f,    -0.005907725659f, -0.001771622653f,
                           0.0003087926634f, -7.032063363e-6f, -4.898814945e-6f, 6.620377014e-7f,
                           3.30020413e-8f,   -1.263165085e-8f};
    return x * detail::polynomial(c, w - 2.5f);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float tail() const {
    constexpr float c[] = {4.848695672f,      0.1983964957f,     -0.003767812629f, 0.0001394612121f,
                           -6.266018418e-6f,  2.921384451e-7f,   -1.105490107e-8f, 2.40100187e-10f,
                           -6.574643432e-12f, -4.538964458e-12f, 1.067666808e-12f, -5.943879415e-14f};
    return x * detail::polynomial(c, w - 12.905f);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float quantile() const {
    return is_in_tail() ? tail() : middle();
  }
};

/// Uniform floats: middle + u half with u in [-1, 1), a multiple of 2^-23, and then inside of [least, most].
struct uniform_floats {
  static constexpr std::uint32_t stream = 2;
  std::uint64_t seed;
  float middle, half, least, most;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float value(std::uint32_t word) const {
    const float u = static_cast<float>(static_cast<std::int32_t>(word) >> 8) * 0x1p-23f;
    return inside(Kokkos::fma(u, half, middle));
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float inside(float drawn) const {
    const float raised = drawn < least ? least : drawn;
    return raised > most ? most : raised;
  }
};

/// Normal floats.
struct normal_floats {
  static constexpr std::uint32_t stream = 3;
  std::uint64_t seed;
  float mean, deviation;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION normal_place place(std::uint32_t word) const {
    return normal_place::of_word(static_cast<std::int32_t>(word));
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float scaled(float quantile) const {
    return Kokkos::fma(deviation, quantile, mean);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float value(std::uint32_t word) const {
    return scaled(place(word).quantile());
  }
};

/// Normal floats of [least, most]: the places from `first` on, `places` of them.
struct truncated_floats {
  static constexpr std::uint32_t stream = 4;
  std::uint64_t seed;
  float mean, deviation, least, most;
  std::int32_t first;
  std::uint32_t places;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION normal_place place(std::uint32_t word) const {
    const auto chosen = static_cast<std::uint32_t>((std::uint64_t{places} * word) >> 32);
    return normal_place::of_word(static_cast<std::int32_t>(static_cast<std::uint32_t>(first) + chosen));
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float scaled(float quantile) const {
    const float drawn = Kokkos::fma(deviation, quantile, mean);
    const float raised = drawn < least ? least : drawn;
    return raised > most ? most : raised;
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float value(std::uint32_t word) const {
    return scaled(place(word).quantile());
  }
};

/// target[i] = the value of element position + i for i in [0, count), in the calling thread, by the
/// processor's vectors.
/// @{
void draw(const uniform_floats& values, std::uint64_t position, std::int64_t count, float* target);
void draw(const normal_floats& values, std::uint64_t position, std::int64_t count, float* target);
void draw(const truncated_floats& values, std::uint64_t position, std::int64_t count, float* target);
/// @}

}  // namespace ferry::random
