// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/finite.hpp>

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

namespace ferry::kernels {

/// N sums of squares over a row, each total[s] * unit[s]^2.
template <class Compute, int N>
struct row_squares {
  Compute total[N];
  Compute unit[N];
};

/// Sums the squares of the numbers that measure(column, count, part, inverse) sets, as that of Walk::sums, and
/// divides by the units. A row whose sums overflow or are very small is summed once more, in
/// another unit. So other rows cost little more and keep their bits, and the order is that of row_sum_order
/// in both passes.
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
