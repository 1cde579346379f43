// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/drawn_floats.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

/// Generators of initial values, each a pure function of the element's row, column and row-major position.
/// `is_by_position` tells one that ignores row and column. One with `draws_at_once` also makes that many
/// neighbours at the price of one, by draw(), and runs of them on a host, by run().
namespace ferry::kernels {

template <class T>
struct constant_value {
  static constexpr bool is_by_position = true;
  T value;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t) const { return value; }
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

template <class T>
struct normal_value {
  static constexpr bool is_by_position = true;
  double mean, deviation;
  std::uint64_t seed;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
    const double drawn = random::normal(seed, static_cast<std::uint64_t>(position), mean, deviation);
    if constexpr (std::is_integral_v<T>) {
      // Converting a number outside of the type's range is undefined.
      constexpr auto least = static_cast<double>(Kokkos::Experimental::finite_min_v<T>);
      constexpr auto beyond = static_cast<double>(Kokkos::Experimental::finite_max_v<T> / 2 + 1) * 2.0;
      const double rounded = Kokkos::nearbyint(drawn);
      if (!(rounded > least)) return Kokkos::Experimental::finite_min_v<T>;
      return rounded < beyond ? convert<T>(rounded) : Kokkos::Experimental::finite_max_v<T>;
    } else {
      return convert<T>(drawn);
    }
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
  static constexpr int draws_at_once = 4;
  Values values;

  [[nodiscard]] bool has_whole_draws() const { return true; }
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
    const auto drawn =
        random::block_of(values.seed, static_cast<std::uint64_t>(position) / 4, Values::stream);
    // Selected, because an index would put the words into memory.
    const std::uint32_t low = (position & 1) == 0 ? drawn.word[0] : drawn.word[1];
    const std::uint32_t high = (position & 1) == 0 ? drawn.word[2] : drawn.word[3];
    return convert<T>(values.value((position & 2) == 0 ? low : high));
  }
  /// Elements 4 * number to 4 * number + 3.
  KOKKOS_FORCEINLINE_FUNCTION void draw(std::int64_t number, T* target) const {
    const auto drawn = random::block_of(values.seed, static_cast<std::uint64_t>(number), Values::stream);
    // No loop, which a device's compiler need not unroll.
    target[0] = convert<T>(values.value(drawn.word[0]));
    target[1] = convert<T>(values.value(drawn.word[1]));
    target[2] = convert<T>(values.value(drawn.word[2]));
    target[3] = convert<T>(values.value(drawn.word[3]));
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

/// The least number of T above `value`, or the largest one below it. T is drawn as floats; `value` is finite.
/// @{
template <class T>
T next_above(T value) {
  using bits_type = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
  const auto bits = bit_cast<bits_type>(value);
  constexpr auto sign = static_cast<bits_type>(bits_type{1} << (8 * sizeof(T) - 1));
  if ((bits & static_cast<bits_type>(~sign)) == 0) return bit_cast<T>(bits_type{1});
  return bit_cast<T>(static_cast<bits_type>((bits & sign) == 0 ? bits + 1 : bits - 1));
}
template <class T>
T next_below(T value) {
  return convert<T>(-convert<float>(next_above(convert<T>(-convert<float>(value)))));
}
/// @}

/// The numbers of T in an interval, as floats: the end points, or those next to them inside. An interval
/// without such a number has the one nearest to `low`.
template <class T>
struct numbers_between {
  float least, most;

  numbers_between(double low, double high, bool excludes_high) {
    T first = convert<T>(low), last = convert<T>(high);
    if (convert<double>(first) < low) first = next_above(first);
    const double end = convert<double>(last);
    if (end > high || (excludes_high && !(end < high))) last = next_below(last);
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
  if constexpr (kernels::is_drawn_as_float<T>)
    return kernels::drawn_value<T, random::normal_floats>{
        {seed, static_cast<float>(mean), static_cast<float>(deviation)}};
  else
    return kernels::normal_value<T>{mean, deviation, seed};
}

}  // namespace ferry::detail
