// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

/// The inverse of the normal distribution function, in double and in float. Every rounding is fixed, see
/// random.hpp.
namespace ferry::random {

namespace detail {

/// c[0] + c[1] x + ... by Horner's scheme, every operation an fma. Recursive, as philox().
template <int First, int N, class Real>
KOKKOS_FORCEINLINE_FUNCTION Real polynomial_from(const Real (&c)[N], Real x, Real value) {
  if constexpr (First < 0)
    return value;
  else
    return polynomial_from<First - 1>(c, x, Kokkos::fma(value, x, c[First]));
}
template <int N, class Real>
KOKKOS_FORCEINLINE_FUNCTION Real polynomial(const Real (&c)[N], Real x) {
  return polynomial_from<N - 2>(c, x, c[N - 1]);
}

/// log(x) for normal x > 0: x = m 2^e with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m - 1) / (m + 1)).
KOKKOS_FUNCTION inline double log_of(double x) {
  // Constants, because a device would divide for each number.
  constexpr double odd_inverse[] = {1.0,        1.0 / 3.0,  1.0 / 5.0,  1.0 / 7.0,  1.0 / 9.0,  1.0 / 11.0,
                                    1.0 / 13.0, 1.0 / 15.0, 1.0 / 17.0, 1.0 / 19.0, 1.0 / 21.0, 1.0 / 23.0};
  auto bits = ferry::detail::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double mantissa = ferry::detail::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double series = polynomial(odd_inverse, s * s);
  constexpr double ln2 = 0.6931471805599453;
  return Kokkos::fma(static_cast<double>(exponent), ln2, 2.0 * s * series);
}

}  // namespace detail

/// The quantile of the standard normal distribution for p in (0, 1), with a relative error of about 1e-16:
/// algorithm AS 241, PPND16 (Wichura, 1988).
KOKKOS_FUNCTION inline double normal_quantile(double p) {
  const double q = p - 0.5;
  if (Kokkos::fabs(q) <= 0.425) {
    constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                            1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                            3.3430575583588128105e+4, 2.5090809287301226727e+3};
    constexpr double b[] = {4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
                            2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
                            5.2264952788528545610e+3};
    const double r = Kokkos::fma(-q, q, 0.180625);
    return q * detail::polynomial(a, r) / Kokkos::fma(detail::polynomial(b, r), r, 1.0);
  }
  double r = Kokkos::sqrt(-detail::log_of(q < 0.0 ? p : 1.0 - p));
  double value = 0.0;
  if (r <= 5.0) {
    constexpr double a[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                            3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                            2.27238449892691845833e-2, 7.74545014278341407640e-4};
    constexpr double b[] = {2.05319162663775882187e0,  1.67638483018380384940e0,  6.89767334985100004550e-1,
                            1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                            1.05075007164441684324e-9};
    r -= 1.6;
    value = detail::polynomial(a, r) / Kokkos::fma(detail::polynomial(b, r), r, 1.0);
  } else {
    constexpr double a[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                            2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                            2.71155556874348757815e-5, 2.01033439929228813265e-7};
    constexpr double b[] = {5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
                            7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                            2.04426310338993978564e-15};
    r -= 5.0;
    value = detail::polynomial(a, r) / Kokkos::fma(detail::polynomial(b, r), r, 1.0);
  }
  return q < 0.0 ? -value : value;
}

/// The quantile at one of 2^31 equally likely points, symmetric about 0: x = 2 p - 1 is an odd multiple of
/// 2^-31, the lowest bit of `point` does not count. As in M. Giles, "Approximating the erfinv function"
/// (2011), it is x times a polynomial of w = -log(1 - x^2). Its relative error is below 3e-7, and its largest
/// value is 6.23.
KOKKOS_FORCEINLINE_FUNCTION float normal_quantile_at(std::int32_t point) {
  using ferry::detail::bit_cast;
  constexpr float of_log[] = {0.9999999681f, -0.5000037506f, 0.3333460602f, -0.2496890696f,
                              0.1991334788f, -0.1727820607f, 0.1612624791f, -0.09895350737f};
  constexpr float of_middle[] = {2.12331348f,      0.3488020277f,    -0.005907725659f, -0.001771622653f,
                                 0.0003087926634f, -7.032063363e-6f, -4.898814945e-6f, 6.620377014e-7f,
                                 3.30020413e-8f,   -1.263165085e-8f};
  constexpr float of_tail[] = {4.848695672f,      0.1983964957f,     -0.003767812629f, 0.0001394612121f,
                               -6.266018418e-6f,  2.921384451e-7f,   -1.105490107e-8f, 2.40100187e-10f,
                               -6.574643432e-12f, -4.538964458e-12f, 1.067666808e-12f, -5.943879415e-14f};
  const std::int32_t odd = point | 1;
  const auto to_end =
      static_cast<std::int32_t>(0x80000000u - static_cast<std::uint32_t>(odd < 0 ? -odd : odd));
  const float x = static_cast<float>(odd) * 0x1p-31f;
  const float q = static_cast<float>(to_end) * 0x1p-31f;  // 1 - |x|, with all its digits
  const float product = q * (2.0f - q);                   // 1 - x^2
  // product = m 2^exponent with m in [sqrt(1/2), sqrt(2))
  const auto bits = bit_cast<std::uint32_t>(product);
  const std::int32_t exponent = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
  const float f = bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)) - 1.0f;  // m - 1
  const float w =
      Kokkos::fma(-static_cast<float>(exponent), 0.693147181f, -f * detail::polynomial(of_log, f));
  // A 300th of the points lie in a tail.
  KOKKOS_IF_ON_DEVICE((return x * (w < 5.0f ? detail::polynomial(of_middle, w - 2.5f)
                                            : detail::polynomial(of_tail, w - 12.905f));))
  // Chosen by bits on a host, whose compiler would else branch, and make no vectors.
  KOKKOS_IF_ON_HOST(({
    const std::uint32_t mask = w < 5.0f ? ~std::uint32_t{0} : 0;
    const auto middle = bit_cast<std::uint32_t>(detail::polynomial(of_middle, w - 2.5f));
    const auto tail = bit_cast<std::uint32_t>(detail::polynomial(of_tail, w - 12.905f));
    return x * bit_cast<float>((middle & mask) | (tail & ~mask));
  }))
}

// Random floats, for elements of float, half_t and bhalf_t. Element p of an array takes word p % 4 of Philox
// block p / 4. Each sum of a product is an fma, so hosts and devices compute the same bits.

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

/// Normal floats of [least, most]: the points from `first` on, `count` of them; 0 means all 2^32.
struct normal_floats {
  std::uint64_t seed;
  float mean, deviation, least, most;
  std::int32_t first;
  std::uint32_t count;
  std::uint32_t stream;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float value(std::uint32_t word) const {
    const auto part = static_cast<std::uint32_t>((std::uint64_t{count} * word) >> 32);
    const std::uint32_t point = static_cast<std::uint32_t>(first) + (count == 0 ? word : part);
    const float quantile = normal_quantile_at(static_cast<std::int32_t>(point));
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

namespace ferry::detail {

/// The least number of T above a finite one, or the largest one below it. T is drawn as floats.
template <class T>
T next_to(T value, bool above) {
  using bits_type = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
  const auto bits = bit_cast<bits_type>(value);
  constexpr auto sign = static_cast<bits_type>(bits_type{1} << (8 * sizeof(T) - 1));
  if ((bits & static_cast<bits_type>(~sign)) == 0)
    return bit_cast<T>(static_cast<bits_type>(above ? 1 : sign | 1));
  return bit_cast<T>(static_cast<bits_type>(((bits & sign) == 0) == above ? bits + 1 : bits - 1));
}

/// The numbers of T in an interval, as floats: the end points, or those next to them inside. An interval
/// without such a number has the one nearest to `low`.
template <class T>
struct numbers_between {
  float least, most;

  numbers_between(double low, double high, bool excludes_high) {
    T first = convert<T>(low), last = convert<T>(high);
    if (convert<double>(first) < low) first = next_to(first, true);
    const double end = convert<double>(last);
    if (end > high || (excludes_high && !(end < high))) last = next_to(last, false);
    least = convert<float>(first);
    most = convert<float>(last);
    if (!(least <= most)) least = most = convert<float>(convert<T>(low));
  }
};

/// The nearest finite float.
inline float to_finite_float(double value) {
  constexpr double most = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -most, most));
}

}  // namespace ferry::detail
