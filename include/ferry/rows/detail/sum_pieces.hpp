// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The order of additions over the values of a row. It depends on their number alone, so sums have the same
/// bits on every backend, path and placement, and several threads can sum the values of one row.
///
/// Fewer than 64 values are added one after the other, in the order of their positions. More are cut into
/// pieces of 32 values, or of 1/256 of all values if that is more; the last piece takes the rest, too. The
/// values of a piece are added one after the other, then its sums are.
struct sum_pieces {
  static constexpr std::int64_t least = 32;  ///< values of a piece
  static constexpr std::int64_t most = 256;  ///< pieces, but for the rest

  std::int64_t size;
  std::int64_t count;

  KOKKOS_FORCEINLINE_FUNCTION explicit constexpr sum_pieces(std::int64_t values)
      : size(values / most > least ? values / most : least), count(values / size) {}

  /// True if a row with this number of values has pieces.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr bool cuts(std::int64_t values) { return values >= 2 * least; }
  /// The end of a piece of the values [0, values).
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION constexpr std::int64_t end(std::int64_t number,
                                                                       std::int64_t values) const {
    return number + 1 == count ? values : (number + 1) * size;
  }
};

}  // namespace ferry::kernels
