// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/finite.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// Sums in an order that depends on the number of elements alone, so every backend, with any number of
/// threads, gives the same bits. One thread for each of the `lanes` lanes of a block of lanes x depth
/// elements: neighbours read neighbouring elements. The sums of the lanes are elements of the next level.
namespace ferry::kernels {

inline constexpr std::int64_t sum_lanes = 32;
inline constexpr std::int64_t sum_depth = 64;
inline constexpr std::int64_t sum_block = sum_lanes * sum_depth;

/// A sum of squares of doubles, whose squares may overflow or underflow. Numbers beyond the limits are summed
/// apart, in units of a power of two (Blue, ACM Transactions on Mathematical Software 4, 1978). The sum is
/// middle + large_squares unit^2 + small_squares / unit^2.
struct square_ranges {
  static constexpr double unit = 0x1p600;
  static constexpr double limit = 0x1p480;  ///< numbers in [1 / limit, limit] are in the middle

  double middle = 0.0, large_squares = 0.0, small_squares = 0.0;

  KOKKOS_FORCEINLINE_FUNCTION void add(const square_ranges& term) {
    middle += term.middle;
    large_squares += term.large_squares;
    small_squares += term.small_squares;
  }
  /// The root of the sum is root * factor. It may exceed double.
  struct scaled_root {
    double root, factor;
  };
  [[nodiscard]] KOKKOS_FUNCTION scaled_root root() const {
    constexpr double inverse = 1.0 / unit;
    if (detail::magnitude_bits(large_squares) != 0u)
      return {Kokkos::sqrt(large_squares + middle * inverse * inverse), unit};
    if (middle < 0x1p-900 && small_squares > 0.0)
      return {Kokkos::sqrt(small_squares + middle * unit * unit), inverse};
    return {Kokkos::sqrt(middle), 1.0};
  }
};

/// Adds x^2, rounded once.
KOKKOS_FORCEINLINE_FUNCTION void add_square(square_ranges& sum, double x) {
  const double size = Kokkos::fabs(x);
  if (size > square_ranges::limit) {
    const double scaled = x * (1.0 / square_ranges::unit);
    sum.large_squares = Kokkos::fma(scaled, scaled, sum.large_squares);
  } else if (size < 1.0 / square_ranges::limit) {
    const double scaled = x * square_ranges::unit;
    sum.small_squares = Kokkos::fma(scaled, scaled, sum.small_squares);
  } else {
    sum.middle = Kokkos::fma(x, x, sum.middle);
  }
}

/// Squares of a dense array.
template <class T>
struct dense_squares {
  const T* values;
  std::int64_t stride;
  detail::fast_divisor width;
  std::int64_t count;

  KOKKOS_FUNCTION void add(square_ranges& sum, std::int64_t i) const {
    const std::int64_t row = width.quotient(i);
    const auto value = convert<double>(values[row * stride + i - row * width.divisor()]);
    if constexpr (sizeof(T) <= 2 || std::is_same_v<T, float>)
      sum.middle += value * value;  // exact, and in the middle or 0
    else
      add_square(sum, value);
  }
};

/// Squares of the combined gradients of a plan's unique rows: element i belongs to segment i / width. Their
/// number is known on the device only, so later elements add nothing.
template <class T>
struct combined_squares {
  using sum_type = square_ranges;

  const T* values;
  std::int64_t stride;
  detail::fast_divisor width;
  std::int64_t count;
  const std::int64_t* order;
  const std::int64_t* segment_begin;
  const std::int64_t* unique_count;

  KOKKOS_FUNCTION void add(square_ranges& sum, std::int64_t i) const {
    const std::int64_t segment = width.quotient(i);
    if (segment >= *unique_count) return;
    const std::int64_t column = i - segment * width.divisor();
    double combined = 0.0;
    for (std::int64_t k = segment_begin[segment]; k < segment_begin[segment + 1]; ++k)
      combined += convert<double>(values[order[k] * stride + column]);
    add_square(sum, combined);
  }
};

/// Sums of a lower level.
struct lower_sums {
  const square_ranges* values;
  std::int64_t count;

  KOKKOS_FUNCTION void add(square_ranges& sum, std::int64_t i) const { sum.add(values[i]); }
};

template <class Terms>
struct sum_lane {
  Terms terms;
  square_ranges* sums;

  static std::int64_t bytes_each() { return sum_depth * sizeof(square_ranges); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t block = i / sum_lanes;
    const std::int64_t begin = block * sum_block + i - block * sum_lanes;
    square_ranges sum;
    for (std::int64_t k = 0; k < sum_depth && begin + k * sum_lanes < terms.count; ++k)
      terms.add(sum, begin + k * sum_lanes);
    sums[i] = sum;
  }
};

/// The last level: one thread adds the few sums that are left to *total.
struct add_total {
  const square_ranges* sums;
  std::int64_t count;
  square_ranges* total;

  static std::int64_t bytes_each() { return sum_block * sizeof(square_ranges); }

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    square_ranges sum = *total;
    for (std::int64_t i = 0; i < count; ++i) sum.add(sums[i]);
    *total = sum;
  }
};

struct set_sum {
  square_ranges* sum;
  square_ranges value;

  static std::int64_t bytes_each() { return sizeof(square_ranges); }
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *sum = value; }
};

/// result[0] becomes the norm, result[1] the factor of the gradients. The factor holds for a norm that
/// exceeds double, too.
struct finish_norm {
  const square_ranges* total;
  double* result;
  double max_norm;  ///< negative: no limit

  static std::int64_t bytes_each() { return 2 * sizeof(double); }

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    const auto norm = total->root();
    double factor = 1.0;
    if (max_norm >= 0.0) {
      factor = max_norm / (norm.root + 1e-6 / norm.factor) / norm.factor;
      if (factor > 1.0) factor = 1.0;  // a NaN stays
    }
    result[0] = norm.root * norm.factor;
    result[1] = factor;
  }
};

/// values *= *factor, in double, rounded once. One thread per element.
template <class T>
struct scale_values {
  T* values;
  std::int64_t stride;
  detail::fast_divisor width;
  const double* factor;

  static std::int64_t bytes_each() { return 2 * sizeof(T); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (*factor == 1.0) return;
    const std::int64_t row = width.quotient(i);
    T& value = values[row * stride + i - row * width.divisor()];
    value = convert<T>(convert<double>(value) * *factor);
  }
};

}  // namespace ferry::kernels
