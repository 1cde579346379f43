// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/drawn_floats.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

/// Generators of initial values, each a pure function of the element's row, column and row-major position.
/// `is_by_position` marks one that ignores row and column. One with `neighbours` > 0 also draws that many
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
      constexpr auto limit = static_cast<double>(Kokkos::Experimental::finite_max_v<T> / 2 + 1) * 2.0;
      value = Kokkos::nearbyint(value);
      if (!(value > least)) return Kokkos::Experimental::finite_min_v<T>;
      if (!(value < limit)) return Kokkos::Experimental::finite_max_v<T>;
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

namespace ferry::kernels {

/// One thread per element, row-major.
template <class T, class Generator>
struct fill_elements {
  T* data;
  std::int64_t stride;
  detail::fast_divisor width;
  Generator generator;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i);
    const std::int64_t column = i - row * width.divisor();
    data[row * stride + column] = generator(row, column, i);
  }
};

/// One thread per draw of neighbours, whose positions follow each other in memory.
template <class T, class Generator>
struct fill_neighbours {
  static constexpr int neighbours = Generator::neighbours;
  T* data;
  std::int64_t size;
  Generator generator;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t first = i * neighbours;
    const packet<T, neighbours> drawn = generator.draw(i);
    if (first + neighbours <= size) return store_packet(data + first, drawn);
    for (int e = 0; e < neighbours; ++e)
      if (first + e < size) data[first + e] = drawn.value[e];
  }
};

/// On a host, one thread per run of neighbours.
template <class T, class Generator>
struct fill_runs {
  static constexpr bool takes_runs = true;
  T* data;
  std::int64_t stride;
  std::int64_t width;
  std::int64_t size;
  Generator generator;

  [[nodiscard]] static constexpr std::int64_t bytes_each() { return sizeof(T); }
  void operator()(const detail::host_run& run) const {
    std::int64_t position = run.begin(size);
    const std::int64_t end = run.end(size);
    if (position >= end) return;
    std::int64_t row = position / width;
    for (std::int64_t column = position - row * width; position < end; ++row, column = 0) {
      const std::int64_t count = std::min(width - column, end - position);
      T* const target = data + row * stride + column;
      if constexpr (requires { generator.run(row, column, position, count, target); })
        generator.run(row, column, position, count, target);
      else
        for (std::int64_t i = 0; i < count; ++i) target[i] = generator(row, column + i, position + i);
      position += count;
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// An array of `rows` rows of `width` elements, `stride` elements apart.
template <class T>
struct fill_target {
  T* data;
  std::int64_t rows, width, stride;

  [[nodiscard]] std::int64_t size() const { return rows * width; }
  [[nodiscard]] bool is_contiguous() const { return stride == width || rows == 1; }
};

/// Enqueues an initialisation on an instance that reaches the memory: a host fills runs, a device draws
/// neighbours if they lie next to each other.
template <class Exec, class T, class Generator>
void launch_fill(const Exec& exec, const std::string& label, const fill_target<T>& target,
                 const Generator& generator) {
  const std::int64_t size = target.size();
  if (size == 0) return;
  if constexpr (is_host_exec<Exec>) {
    // One long row, if the generator does not care.
    const bool joins = Generator::is_by_position && target.is_contiguous();
    const std::int64_t width = joins ? size : target.width;
    launch(exec, label, size,
           kernels::fill_runs<T, Generator>{target.data, target.stride, width, size, generator});
  } else {
    if constexpr (requires {
                    requires Generator::neighbours >
                    0;
                  }) {
      constexpr int neighbours = Generator::neighbours;
      if (target.is_contiguous() && (Generator::is_by_position || target.width % neighbours == 0) &&
          reinterpret_cast<std::uintptr_t>(target.data) % (neighbours * sizeof(T)) == 0)
        return launch(exec, label, (size + neighbours - 1) / neighbours,
                      kernels::fill_neighbours<T, Generator>{target.data, size, generator});
    }
    launch(exec, label, size,
           kernels::fill_elements<T, Generator>{target.data, target.stride, fast_divisor(target.width),
                                                generator});
  }
}

}  // namespace ferry::detail
