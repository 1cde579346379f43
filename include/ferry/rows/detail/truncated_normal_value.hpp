// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ferry::random {

/// The quantile of the standard normal distribution for p in (0, 1), with a relative error of about 1e-16:
/// algorithm AS 241, PPND16 (Wichura, 1988). Every rounding is fixed, see random.hpp.
KOKKOS_FUNCTION inline double normal_quantile(double p) {
  const double q = p - 0.5;
  if (Kokkos::fabs(q) <= 0.425) {
    const double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                        1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
    const double b[] = {1.0,
                        4.2313330701600911252e+1,
                        6.8718700749205790830e+2,
                        5.3941960214247511077e+3,
                        2.1213794301586595867e+4,
                        3.9307895800092710610e+4,
                        2.8729085735721942674e+4,
                        5.2264952788528545610e+3};
    const double r = Kokkos::fma(-q, q, 0.180625);
    return q * detail::polynomial(a, r) / detail::polynomial(b, r);
  }
  const double tail = q < 0.0 ? p : 1.0 - p;
  const double r = Kokkos::sqrt(-detail::log_of(tail));
  double value = 0.0;
  if (r <= 5.0) {
    const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                        3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                        2.27238449892691845833e-2, 7.74545014278341407640e-4};
    const double d[] = {1.0,
                        2.05319162663775882187e0,
                        1.67638483018380384940e0,
                        6.89767334985100004550e-1,
                        1.48103976427480074590e-1,
                        1.51986665636164571966e-2,
                        5.47593808499534494600e-4,
                        1.05075007164441684324e-9};
    value = detail::polynomial(c, r - 1.6) / detail::polynomial(d, r - 1.6);
  } else {
    const double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                        2.71155556874348757815e-5, 2.01033439929228813265e-7};
    const double f[] = {1.0,
                        5.99832206555887937690e-1,
                        1.36929880922735805310e-1,
                        1.48753612908506148525e-2,
                        7.86869131145613259100e-4,
                        1.84631831751005468180e-5,
                        1.42151175831644588870e-7,
                        2.04426310338993978564e-15};
    value = detail::polynomial(e, r - 5.0) / detail::polynomial(f, r - 5.0);
  }
  return q < 0.0 ? -value : value;
}

}  // namespace ferry::random

namespace ferry::kernels {

/// A normal number between low and high: the quantile of a uniform number of [lower, upper). A negative
/// deviation mirrors the distribution.
template <class T>
struct truncated_normal_value {
  static constexpr bool is_by_position = true;
  double mean, deviation, low, high, lower, upper;
  std::uint64_t seed;

  KOKKOS_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
    double p = random::uniform(seed, static_cast<std::uint64_t>(position), lower, upper);
    if (p < 0x1p-1022) p = 0x1p-1022;  // an open end: log needs a normal number
    if (p > 1.0 - 0x1p-53) p = 1.0 - 0x1p-53;
    double value = Kokkos::fma(random::normal_quantile(p), deviation, mean);
    value = value < low ? low : value;
    return convert<T>(value > high ? high : value);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Places of random::normal_place between two probabilities.
struct normal_places {
  std::int32_t first;
  std::uint32_t count;
};
inline normal_places places_between(double lower, double upper) {
  constexpr double range = 0x1p32;
  const double first = std::ceil(lower * range), last = std::floor(upper * range);
  const double count = std::clamp(last - first, 0.0, range - 1.0);
  return {static_cast<std::int32_t>(std::min(first, range - 1.0) - 0x1p31),
          static_cast<std::uint32_t>(count)};
}
/// Floats can't tell more places than these apart.
inline constexpr std::uint32_t enough_places = 1u << 24;

}  // namespace ferry::detail
