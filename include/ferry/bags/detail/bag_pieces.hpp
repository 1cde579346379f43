// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/sum_pieces.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// Bags whose rows are added in pieces, see sum_pieces. If a kernel sums the pieces before the bags are
/// pooled, each piece has a row in a buffer: pieces begin at least 32 positions apart, so position / 32 is a
/// row that no other piece of the bag has.
struct long_bags {
  static constexpr std::int64_t least = 1024;  ///< positions

  KOKKOS_FORCEINLINE_FUNCTION static constexpr bool has(const bag_range& range) {
    return range.end - range.begin >= least;
  }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr std::int64_t slot(std::int64_t begin) {
    return begin / sum_pieces::least;
  }
  /// Rows of the buffer for `positions` positions.
  static constexpr std::int64_t slots(std::int64_t positions) { return positions / sum_pieces::least; }
};

/// Describes a row of the buffer. Bags next to bad offsets may overlap, so a bag may lack rows of the buffer.
struct piece_note {
  std::int64_t bag;       ///< whose piece the row has, or -1
  std::int64_t rows;      ///< positions of the piece that have a row; fewer than positions if one has none
  std::int64_t bag_rows;  ///< those of the bag, if the row has the bag's sum; else -1
};

template <class Compute>
struct piece_buffer {
  Compute* sums = nullptr;      ///< null: there is no buffer
  piece_note* notes = nullptr;  ///< of each row
};

/// The positions [begin, end) of a bag that are a piece.
struct bag_piece {
  std::int64_t bag = -1;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The piece of a row of the buffer: a piece covers the last position of the row in which it begins. Its bag
/// is -1 if there is none.
template <class Offset>
KOKKOS_FUNCTION bag_piece piece_of(const bag_list<Offset>& bags, std::int64_t slot) {
  const std::int64_t first = slot * sum_pieces::least, last = first + sum_pieces::least - 1;
  const std::int64_t bag = bags.bag_of(last);
  const bag_range range = bags.range(bag, false);
  if (!long_bags::has(range) || last < range.begin || last >= range.end) return {};
  const sum_pieces cut(range.end - range.begin);
  const std::int64_t number = range.begin >= first ? 0 : (first - range.begin + cut.size - 1) / cut.size;
  const std::int64_t begin = range.begin + number * cut.size;
  if (number >= cut.count || begin > last) return {};
  return {bag, begin, range.begin + cut.end(number, range.end - range.begin)};
}

/// The sum of the pieces of a bag, for a thread that adds all of them. A device's thread keeps it in memory:
/// it is used once per piece, and registers for it would leave room for fewer threads.
template <class Compute, int Elements, bool InMemory>
struct sum_of_pieces {
  template <class T>
  using kept = std::conditional_t<InMemory, volatile T, T>;
  using bits = typename packet_integer<sizeof(Compute)>::type;

  kept<std::int64_t> size, left;
  kept<bits> total[Elements];

  /// The sum of no bag. A device's stores nothing in memory.
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
  /// The end of the piece that begins at `end`; `end` if there is none.
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
