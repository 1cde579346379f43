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

/// sum + x^2 with one rounding. The square of a float or of 16 bits is exact in double.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION double add_square(double sum, const T& x) {
  const auto wide = convert<double>(x);
  if constexpr (sizeof(T) <= 2 || std::is_same_v<T, float>)
    return sum + wide * wide;
  else
    return Kokkos::fma(wide, wide, sum);
}

/// Squares of a dense array.
template <class T>
struct dense_squares {
  const T* values;
  std::int64_t stride;
  detail::fast_divisor width;
  std::int64_t count;

  KOKKOS_FUNCTION double add(double sum, std::int64_t i) const {
    const std::int64_t row = width.quotient(i);
    return add_square(sum, values[row * stride + i - row * width.divisor()]);
  }
};

/// Squares of the combined gradients of a plan's unique rows: element i belongs to segment i / width. Their
/// number is known on the device only, so later elements add nothing.
template <class T>
struct combined_squares {
  const T* values;
  std::int64_t stride;
  detail::fast_divisor width;
  std::int64_t count;
  const std::int64_t* order;
  const std::int64_t* segment_begin;
  const std::int64_t* unique_count;

  KOKKOS_FUNCTION double add(double sum, std::int64_t i) const {
    const std::int64_t segment = width.quotient(i);
    if (segment >= *unique_count) return sum;
    const std::int64_t column = i - segment * width.divisor();
    double combined = 0.0;
    for (std::int64_t k = segment_begin[segment]; k < segment_begin[segment + 1]; ++k)
      combined += convert<double>(values[order[k] * stride + column]);
    return add_square(sum, combined);
  }
};

/// Sums of a lower level.
struct lower_sums {
  const double* values;
  std::int64_t count;

  KOKKOS_FUNCTION double add(double sum, std::int64_t i) const { return sum + values[i]; }
};

template <class Terms>
struct sum_lane {
  Terms terms;
  double* sums;

  static std::int64_t bytes_each() { return sum_depth * sizeof(double); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t block = i / sum_lanes;
    const std::int64_t begin = block * sum_block + i - block * sum_lanes;
    double sum = 0.0;
    for (std::int64_t k = 0; k < sum_depth && begin + k * sum_lanes < terms.count; ++k)
      sum = terms.add(sum, begin + k * sum_lanes);
    sums[i] = sum;
  }
};

/// The last level: one thread adds the few sums that are left to *total.
struct add_total {
  const double* sums;
  std::int64_t count;
  double* total;

  static std::int64_t bytes_each() { return sum_block * sizeof(double); }

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    double sum = *total;
    for (std::int64_t i = 0; i < count; ++i) sum += sums[i];
    *total = sum;
  }
};

struct set_zero {
  double* value;
  static std::int64_t bytes_each() { return sizeof(double); }
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *value = 0.0; }
};

/// result[0] holds the sum of squares, then the norm; result[1] the factor of the gradients.
struct finish_norm {
  double* result;
  double max_norm;  ///< negative: no limit

  static std::int64_t bytes_each() { return 2 * sizeof(double); }

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    const double norm = Kokkos::sqrt(result[0]);
    double factor = 1.0;
    if (max_norm >= 0.0) {
      factor = max_norm / (norm + 1e-6);
      if (factor > 1.0) factor = 1.0;  // a NaN stays
    }
    result[0] = norm;
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
