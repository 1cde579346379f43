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
template <class Number>
struct pieces_of {
  static constexpr Number least = 32;                                  ///< values of a piece
  static constexpr Number most = 256;                                  ///< pieces, but for the rest
  static constexpr Number least_cut = 2 * least;                       ///< values that are cut
  static constexpr Number greatest_count = most + most / (least + 1);  ///< with the rest

  Number size;
  Number count;

  KOKKOS_FORCEINLINE_FUNCTION explicit constexpr pieces_of(Number values)
      : size(values / most > least ? values / most : least), count(values < least_cut ? 1 : values / size) {}

  /// The end of a piece of the values [0, values).
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION constexpr Number end(Number number, Number values) const {
    return number + 1 == count ? values : (number + 1) * size;
  }
};
using sum_pieces = pieces_of<std::int64_t>;
/// For fewer than 2^32 values.
using piece_cut = pieces_of<std::uint32_t>;

}  // namespace ferry::kernels
