// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/drawn_floats.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

/// Generators of initial values, each a pure function of the element's row, column and row-major position.
/// `is_by_position` tells one that ignores row and column. One with `neighbours` > 0 also draws that many
/// elements, of position `number` * neighbours and after, at the price of one, and runs of them on a host.
namespace ferry::kernels {

template <class T>
struct constant_value {
  static constexpr bool is_by_position = true;
  static constexpr int neighbours =
      std::has_single_bit(sizeof(T)) && sizeof(T) <= 16 && std::is_trivially_default_constructible_v<T>
          ? static_cast<int>(16 / sizeof(T))
          : 0;
  T value;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t) const { return value; }
  template <int Neighbours = neighbours>
  KOKKOS_FORCEINLINE_FUNCTION packet<T, Neighbours> draw(std::int64_t) const {
    packet<T, Neighbours> values;
    for (int e = 0; e < Neighbours; ++e) values.value[e] = value;
    return values;
  }
};

template <class T>
struct uniform_value {
  static constexpr bool is_by_position = true;
  double low, high;
  std::uint64_t seed;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
    const double drawn = random::uniform(seed, static_cast<std::uint64_t>(position), low, high);
    const T value = convert<T>(std::is_integral_v<T> ? Kokkos::floor(drawn) : drawn);
    // Rounding may reach the excluded end of the interval.
    return static_cast<double>(value) < high || !(low < high) ? value : convert<T>(low);
  }
};

/// A normal number of [low, high]: the quantile of a uniform number of [lower, upper). A negative deviation
/// mirrors the distribution.
template <class T>
struct normal_value {
  static constexpr bool is_by_position = true;
  double mean, deviation, low, high, lower, upper;
  std::uint64_t seed;
  KOKKOS_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
    const auto drawn = random::block_of(seed, static_cast<std::uint64_t>(position), 1);
    const double middle = random::unit(drawn.word[0], drawn.word[1]) + 0x1p-54;  // of a cell, so never 0
    double p = Kokkos::fma(middle, upper - lower, lower);
    if (p < 0x1p-1022) p = 0x1p-1022;  // log needs a normal number
    if (p > 1.0 - 0x1p-53) p = 1.0 - 0x1p-53;
    double value = Kokkos::fma(random::normal_quantile(p), deviation, mean);
    value = value < low ? low : value;
    value = value > high ? high : value;
    if constexpr (std::is_integral_v<T>) {
      // Converting a number outside of the type's range is undefined.
      constexpr auto least = static_cast<double>(Kokkos::Experimental::finite_min_v<T>);
      constexpr auto beyond = static_cast<double>(Kokkos::Experimental::finite_max_v<T> / 2 + 1) * 2.0;
      value = Kokkos::nearbyint(value);
      if (!(value > least)) return Kokkos::Experimental::finite_min_v<T>;
      if (!(value < beyond)) return Kokkos::Experimental::finite_max_v<T>;
    }
    return convert<T>(value);
  }
};

template <class T, class Function>
struct custom_value {
  static constexpr bool is_by_position = false;
  Function function;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t row, std::int64_t column, std::int64_t) const {
    return convert<T>(function(row, column));
  }
};

/// Elements that are drawn as floats: float itself and the 16-bit formats. Those of 8 bits are too few.
template <class T>
inline constexpr bool is_drawn_as_float = std::is_same_v<accumulation_t<T>, float> && sizeof(T) >= 2;

/// Elements of random floats.
template <class T, class Values>
struct drawn_value {
  static constexpr bool is_by_position = true;
  static constexpr int neighbours = 4;
  Values values;

  KOKKOS_FORCEINLINE_FUNCTION packet<T, 4> draw(std::int64_t number) const {
    const auto drawn = random::block_of(values.seed, static_cast<std::uint64_t>(number), values.stream);
    // No loop, which a device's compiler need not unroll.
    return {{convert<T>(values.value(drawn.word[0])), convert<T>(values.value(drawn.word[1])),
             convert<T>(values.value(drawn.word[2])), convert<T>(values.value(drawn.word[3]))}};
  }
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
    const auto drawn = random::block_of(values.seed, static_cast<std::uint64_t>(position) / 4, values.stream);
    // Selected, because an index would put the words into memory.
    const std::uint32_t low = (position & 1) == 0 ? drawn.word[0] : drawn.word[1];
    const std::uint32_t high = (position & 1) == 0 ? drawn.word[2] : drawn.word[3];
    return convert<T>(values.value((position & 2) == 0 ? low : high));
  }
  void run(std::int64_t, std::int64_t, std::int64_t position, std::int64_t count, T* target) const {
    if constexpr (std::is_same_v<T, float>) {
      random::draw(values, static_cast<std::uint64_t>(position), count, target);
    } else {
      constexpr std::int64_t room = 256;
      float drawn[room];
      for (std::int64_t begin = 0; begin < count; begin += room) {
        const std::int64_t part = std::min(room, count - begin);
        random::draw(values, static_cast<std::uint64_t>(position + begin), part, drawn);
        for (std::int64_t i = 0; i < part; ++i) target[begin + i] = convert<T>(drawn[i]);
      }
    }
  }
};

}  // namespace ferry::kernels

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

/// The generator of init::uniform, for integers of [ceil(low), ceil(high)).
template <class T>
auto uniform_generator(double low, double high, std::uint64_t seed) {
  if constexpr (kernels::is_drawn_as_float<T>) {
    const numbers_between<T> range(low, high, low < high);
    const double half = 0.5 * high - 0.5 * low;
    return kernels::drawn_value<T, random::uniform_floats>{
        {seed, to_finite_float(0.5 * low + 0.5 * high), to_finite_float(half), range.least, range.most}};
  } else if constexpr (std::is_integral_v<T>) {
    return kernels::uniform_value<T>{std::ceil(low), std::max(std::ceil(high), std::ceil(low) + 1.0), seed};
  } else {
    return kernels::uniform_value<T>{low, high, seed};
  }
}

/// The generator of init::normal.
template <class T>
auto normal_generator(double mean, double deviation, std::uint64_t seed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if constexpr (kernels::is_drawn_as_float<T>) {
    constexpr auto most = static_cast<float>(infinity);
    return kernels::drawn_value<T, random::normal_floats>{
        {seed, static_cast<float>(mean), static_cast<float>(deviation), -most, most, 0, 0, 3}};
  } else {
    return kernels::normal_value<T>{mean, deviation, -infinity, infinity, 0.0, 1.0, seed};
  }
}

}  // namespace ferry::detail
