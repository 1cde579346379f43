// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// A long bag whose pieces all threads of a launch share.
struct listed_bag {
  std::int64_t bag;
  std::int64_t begin, end;   ///< its positions
  std::int64_t first_piece;  ///< among the pieces of all listed bags
};

/// Sums of pieces of a listed bag that have arrived, of a tile.
struct piece_arrivals {
  std::uint64_t rows;   ///< positions that have a row; fewer than positions if one has none
  std::uint32_t count;  ///< of sums
};

/// Number of listed bags, and of their pieces.
struct listed_counts {
  static constexpr int bits = 24;  ///< of the number of bags, in the word that has both

  std::int64_t bags;
  std::int64_t pieces;

  KOKKOS_FORCEINLINE_FUNCTION static listed_counts from(std::uint64_t word) {
    return {static_cast<std::int64_t>(word & ((std::uint64_t{1} << bits) - 1)),
            static_cast<std::int64_t>(word >> bits)};
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t word_for_bag(std::int64_t pieces) {
    return static_cast<std::uint64_t>(pieces) << bits | 1U;
  }
};

/// Long bags that the threads which meet them leave to pool_long_bags. Their pieces are numbered in the order
/// of the list, which differs from run to run; sums do not depend on it.
///
/// Bags that do not overlap fit into the list. Bags next to bad offsets may overlap. If they exceed the list,
/// the counts say so.
struct long_bag_list {
  ferry::detail::long_bag_counts* state = nullptr;  ///< null: there is no list
  std::int64_t least = 0;                           ///< positions of a bag that is listed
  std::int64_t most_bags = 0;                       ///< that have room
  std::int64_t most_pieces = 0;
  std::int64_t tiles = 0;  ///< of a row
  listed_bag* bags = nullptr;
  piece_arrivals* arrivals = nullptr;  ///< of each bag and tile

  KOKKOS_FORCEINLINE_FUNCTION bool takes(const bag_range& range) const {
    return state != nullptr && range.end - range.begin >= least;
  }
  KOKKOS_FUNCTION void add(std::int64_t bag, const bag_range& range) const {
    const std::int64_t pieces = sum_pieces(range.end - range.begin).count;
    const auto before =
        listed_counts::from(Kokkos::atomic_fetch_add(&state->listed, listed_counts::word_for_bag(pieces)));
    if (before.bags >= most_bags || before.pieces + pieces > most_pieces) return;
    bags[before.bags] = {bag, range.begin, range.end, before.pieces};
    for (std::int64_t tile = 0; tile < tiles; ++tile) arrivals[before.bags * tiles + tile] = {0, 0};
  }

  /// All threads of a device's kernel load the word: Kokkos' loop of compare-and-exchange takes them 40 us.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION listed_counts counts() const {
    KOKKOS_IF_ON_DEVICE(
        (return listed_counts::from(*static_cast<const volatile std::uint64_t*>(&state->listed));))
    KOKKOS_IF_ON_HOST((return listed_counts::from(Kokkos::atomic_load(&state->listed));))
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool exceeds(const listed_counts& listed) const {
    return listed.bags > most_bags || listed.pieces > most_pieces;
  }
  /// The place in the list of the bag that has a piece.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t place_of(std::int64_t piece,
                                                                  std::int64_t count) const {
    std::int64_t low = 0, high = count;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (bags[middle].first_piece <= piece)
        low = middle;
      else
        high = middle;
    }
    return low;
  }
  /// Counts a part of the work that is done. The last of `parts` empties the list for the next verb.
  KOKKOS_FORCEINLINE_FUNCTION void count_part(std::int64_t parts) const {
    if (Kokkos::atomic_fetch_add(&state->completed, 1U) + 1 != static_cast<unsigned int>(parts)) return;
    Kokkos::atomic_store(&state->completed, 0U);
    Kokkos::atomic_store(&state->listed, std::uint64_t{0});
  }
};

}  // namespace ferry::kernels
