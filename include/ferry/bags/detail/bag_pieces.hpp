// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// Bags whose rows are added in pieces, see sum_pieces.
struct long_bags {
  static constexpr std::int64_t least = 1024;  ///< positions

  KOKKOS_FORCEINLINE_FUNCTION static constexpr bool has(const bag_range& range) {
    return range.end - range.begin >= least;
  }
};

/// The sum of the pieces of a bag, for a thread that adds all of them. A device's thread keeps it in memory:
/// it is used once per piece, and registers for it would leave room for fewer threads.
template <class Compute, int Elements, bool InMemory>
struct sum_of_pieces {
  template <class T>
  using kept = std::conditional_t<InMemory, volatile T, T>;
  using bits = typename packet_integer<sizeof(Compute)>::type;

  kept<std::int64_t> size, left;
  kept<bits> total[Elements];

  /// The sum of no bag. On a device nothing is set, so that threads of short bags write no memory.
  KOKKOS_FORCEINLINE_FUNCTION sum_of_pieces() {
    if constexpr (!InMemory) {
      size = left = 0;
      for (bits& element : total) element = 0;
    }
  }
  /// Starts with the first piece of a bag. Returns its end.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t first_end(const bag_range& range, int count) {
    const std::int64_t piece = sum_pieces(range.end - range.begin).size;
    size = piece;
    left = range.end - range.begin - piece;
    for (int e = 0; e < count; ++e) total[e] = ferry::detail::bit_cast<bits>(Compute(0));
    return range.begin + piece;
  }
  /// The end of the piece that begins at `end`; `end` if there is none. The last piece takes the rest, too.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t next_end(std::int64_t end) {
    const std::int64_t rest = left, piece = size;
    const std::int64_t positions = rest < 2 * piece ? rest : piece;
    left = rest - positions;
    return end + positions;
  }
  /// Adds the sum of a piece, and sets it to 0.
  KOKKOS_FORCEINLINE_FUNCTION void add(Compute (&sum)[Elements], int count) {
    for (int e = 0; e < count; ++e) {
      const bits before = total[e];
      total[e] = ferry::detail::bit_cast<bits>(
          static_cast<Compute>(ferry::detail::bit_cast<Compute>(before) + sum[e]));
      sum[e] = Compute(0);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void store(Compute (&sum)[Elements], int count) const {
    for (int e = 0; e < count; ++e) {
      const bits whole = total[e];
      sum[e] = ferry::detail::bit_cast<Compute>(whole);
    }
  }
};

}  // namespace ferry::kernels
