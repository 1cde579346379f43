// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// Sums of squares of numbers whose squares overflow or underflow.
namespace ferry::optim {

/// The units of sums of squares, powers of two. A sum of squares is total * unit^2. The unit is 1 unless the
/// sum of the numbers' own squares is less than `least` or overflows.
template <class Compute>
struct square_unit {
  static constexpr bool wide = sizeof(Compute) > sizeof(float);
  static constexpr double large_unit = wide ? 0x1p600 : 0x1p96;
  static constexpr double small_unit = wide ? 0x1p-600 : 0x1p-96;
  static constexpr double least = wide ? 0x1p-900 : 0x1p-100;

  /// The unit in which a row is summed that has this sum in the unit 1.
  KOKKOS_FORCEINLINE_FUNCTION static Compute for_sum(const Compute& sum) {
    if (!ferry::detail::is_finite(sum)) return Compute(large_unit);
    return sum < Compute(least) ? Compute(small_unit) : Compute(1);
  }
};

/// 1 / unit, exactly.
template <class Compute>
KOKKOS_FORCEINLINE_FUNCTION Compute inverse_unit(const Compute& unit) {
  using units = square_unit<Compute>;
  return unit > Compute(1)   ? Compute(units::small_unit)
         : unit < Compute(1) ? Compute(units::large_unit)
                             : Compute(1);
}

/// `result`, or the largest finite number if it is infinite although `input` is finite.
template <class Compute>
KOKKOS_FORCEINLINE_FUNCTION Compute saturated(const Compute& result, const Compute& input) {
  using plain = std::conditional_t<sizeof(Compute) == sizeof(float), float, double>;
  return !ferry::detail::is_finite(result) && ferry::detail::is_finite(input)
             ? Compute(Kokkos::Experimental::finite_max_v<plain>)
             : result;
}

/// A second moment: value * unit^2.
template <class Compute>
struct scaled_moment {
  Compute value;
  Compute unit;

  /// sqrt(moment / divisor), for a divisor in (0, 1].
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION Compute root_over(const Compute& divisor) const {
    const Compute quotient = value / divisor;
    if (ferry::detail::is_finite(quotient)) return Kokkos::sqrt(quotient) * unit;
    const auto large_unit = Compute(square_unit<Compute>::large_unit);
    const Compute inverse = inverse_unit(large_unit);
    return Kokkos::sqrt(value * inverse * inverse / divisor) * large_unit * unit;
  }
};

/// moment = kept + added * unit^2. The stored moment saturates at the largest finite number, so that a later
/// step is not divided by infinity. The result is the moment of this step, which does not.
template <class Compute>
KOKKOS_FORCEINLINE_FUNCTION scaled_moment<Compute> add_to_moment(Compute& moment, const Compute& previous,
                                                                 const Compute& added, const Compute& unit) {
  const Compute sum = previous + added * unit * unit;
  if (ferry::detail::is_finite(sum)) {
    moment = sum;
    return {sum, Compute(1)};
  }
  const auto large_unit = Compute(square_unit<Compute>::large_unit);
  const Compute inverse = inverse_unit(large_unit);
  const Compute value =
      previous * inverse * inverse + (unit > Compute(1) ? added : added * inverse * inverse);
  moment = saturated(value * large_unit * large_unit, value);
  return {value, large_unit};
}

}  // namespace ferry::optim

/// Sums in an order that depends on the number of elements alone, so every backend, with any number of
/// threads, gives the same bits. One thread for each of the `lanes` lanes of a block of lanes x depth
/// elements: neighbours read neighbouring elements. The sums of the lanes are elements of the next level. One
/// thread adds those of the last level, a block for each array.
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

/// One thread: result[0] becomes the norm of total + the sums, result[1] the factor of the gradients. The
/// factor holds for a norm that exceeds double, too.
struct finish_norm {
  square_ranges total;
  lower_sums sums;
  double* result;
  double max_norm;  ///< negative: no limit

  static std::int64_t bytes_each() { return sum_block * sizeof(square_ranges); }

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    square_ranges sum = total;
    for (std::int64_t i = 0; i < sums.count; ++i) sums.add(sum, i);
    const auto norm = sum.root();
    double factor = 1.0;
    if (max_norm >= 0.0) {
      factor = max_norm / (norm.root + 1e-6 / norm.factor) / norm.factor;
      if (factor > 1.0) factor = 1.0;  // a NaN stays
    }
    result[0] = norm.root * norm.factor;
    result[1] = factor;
  }
};

/// N sums of squares over a row, each total[s] * unit[s]^2.
template <class Compute, int N>
struct row_squares {
  Compute total[N];
  Compute unit[N];
};

/// Sums the squares of the numbers that measure(column, count, part, inverse) sets, as that of Walk::sums,
/// and divides by the units. A row whose sums overflow or are very small is summed once more, in another
/// unit. So other rows cost little more and keep their bits, and the order is that of row_sum_order in both
/// passes.
template <class Tile, class Compute, int N, class Walk, class Measure>
KOKKOS_FORCEINLINE_FUNCTION row_squares<Compute, N> squares_of(const Walk& walk, const Measure& measure) {
  row_squares<Compute, N> squares;
  Compute inverse[N];
  for (int s = 0; s < N; ++s) squares.unit[s] = inverse[s] = Compute(1);
  for (bool rescaled = false;; rescaled = true) {
    const auto sums =
        walk.template sums<N>([&](std::int64_t column, int count, Compute(&part)[N][Tile::elements]) {
          measure(column, count, part, inverse);  // the unit 1 leaves the bits
          for (int s = 0; s < N; ++s)
            for (int e = 0; e < live<Tile>(count); ++e) part[s][e] *= part[s][e];
        });
    bool in_range = true;
    for (int s = 0; s < N; ++s) squares.total[s] = sums.value[s];
    if (rescaled) return squares;
    for (int s = 0; s < N; ++s) {
      squares.unit[s] = optim::square_unit<Compute>::for_sum(sums.value[s]);
      in_range = in_range && squares.unit[s] == Compute(1);
      inverse[s] = optim::inverse_unit(squares.unit[s]);
    }
    if (in_range) return squares;
  }
}

}  // namespace ferry::kernels
