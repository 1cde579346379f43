// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// Generators of initial values, each a pure function of the element's row, column and row-major position.
namespace ferry::kernels {

template <class T>
struct constant_value {
  T value;
  KOKKOS_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t) const { return value; }
};

template <class T>
struct uniform_value {
  double low, high;
  std::uint64_t seed;
  KOKKOS_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
    const double drawn = random::uniform(seed, static_cast<std::uint64_t>(position), low, high);
    const T value = convert<T>(std::is_integral_v<T> ? Kokkos::floor(drawn) : drawn);
    // Rounding to a narrower type may reach the excluded end of the interval.
    return static_cast<double>(value) < high || !(low < high) ? value : convert<T>(low);
  }
};

template <class T>
struct normal_value {
  double mean, deviation;
  std::uint64_t seed;
  KOKKOS_FUNCTION T operator()(std::int64_t, std::int64_t, std::int64_t position) const {
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
  Function function;
  KOKKOS_FUNCTION T operator()(std::int64_t row, std::int64_t column, std::int64_t) const {
    return convert<T>(function(row, column));
  }
};

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

}  // namespace ferry::kernels
