// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/rows/detail/pieces_of_rows.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The tiles of a row with many values that one of several teams updates. Each team has some neighbouring
/// places of the segment, and the tiles whose numbers have the same ratio to all tiles as these places to all
/// places. So each tile has one team, and no team has to know the others.
struct team_share {
  static constexpr int fewest = 8;  ///< values of a row that teams share: loads of fewer need not overlap

  std::int64_t row;
  int item;    ///< of the row
  int begin;   ///< of the segment
  int values;  ///< of the segment
  int pieces;  ///< of the segment
  int tile;    ///< the first of the team
  int tiles;   ///< of the team

  team_share() = default;
  /// That of the team with the places [first, end) of a segment of `count` values, for rows of `width` tiles.
  KOKKOS_FORCEINLINE_FUNCTION team_share(std::int64_t number, int item_of_row, int begins, int count,
                                         int first, int end, int width)
      : row(number), item(item_of_row), begin(begins), values(count), pieces(1) {
    const auto tile_at = [&](int place) {
      return static_cast<int>((std::int64_t{place} * width + count - 1) / count);
    };
    tile = tile_at(first);
    tiles = tile_at(end) - tile;
    if (sum_pieces::cuts(count))
      pieces = static_cast<int>(piece_cut(static_cast<std::uint32_t>(count)).count);
  }
  /// Tiles of round `number`, in which a team sums at most `most` of each row.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION int width(int number, int most) const {
    const int left = tiles - number * most;
    return left <= 0 ? 0 : left < most ? left : most;
  }
  /// The places [first, end) of a piece.
  KOKKOS_FORCEINLINE_FUNCTION void places_of(int piece, int& first, int& end) const {
    const auto number = static_cast<std::uint32_t>(piece), count = static_cast<std::uint32_t>(values);
    const piece_cut cut(count);
    first = begin + (pieces > 1 ? static_cast<int>(number * cut.size) : 0);
    end = begin + (pieces > 1 ? static_cast<int>(cut.end(number, count)) : values);
  }
};

/// The sum of load(k) for k in [first, end), one after the other. Several loads are under way.
template <class Compute, class Load>
KOKKOS_FORCEINLINE_FUNCTION Compute sum_in_order(int first, int end, const Load& load) {
  constexpr int under_way = 8;
  Compute sum = load(first);
  FERRY_LOOP_OF_DEVICE
  for (int k = first + 1; k < end; k += under_way) {
    Compute next[under_way];
    for (int j = 0; j < under_way; ++j)
      if (k + j < end) next[j] = load(k + j);
    for (int j = 0; j < under_way; ++j)
      if (k + j < end) sum += next[j];
  }
  return sum;
}

/// Updates a team's shares of `count` rows, as `kernel` would, with all threads of the team. `memory` is the
/// team's, for the sums of all pieces of a tile of each share at least.
///
/// Device mapping: the pieces of some neighbouring tiles of each share are summed, a thread for each piece
/// and column, then a thread for each column adds them up, and one for each tile updates it.
template <class Team, class Kernel>
KOKKOS_FORCEINLINE_FUNCTION void update_by_team(const Team& team, unsigned char* memory, int bytes,
                                                const Kernel& kernel, const team_share* shares, int count) {
  using tile = typename Kernel::tile;
  using compute = typename Kernel::compute;
  constexpr int elements = tile::elements;
  auto* const sums = reinterpret_cast<compute*>(memory);
  int pieces = 0, widest = 0;
  for (int s = 0; s < count; ++s) {
    pieces += shares[s].pieces;
    if (shares[s].tiles > widest) widest = shares[s].tiles;
  }
  if (pieces == 0) return;
  const int most = bytes / (pieces * elements * static_cast<int>(sizeof(compute)));
  const auto column_of = [&](const team_share& share, int number) {
    return first_column<tile>(kernel.operation, share.item, share.row) +
           std::int64_t{share.tile + number} * elements;
  };
  // Shares out the work items of a round: act(share, k, place) for item k of a share, whose sums begin at
  // `place`. Each tile of a share has `parts` items, or as many for each piece.
  const auto for_each = [&](int round, bool by_pieces, int parts, const auto& act) {
    for (int job = team.team_rank();; job += team.team_size()) {
      int s = 0, k = job, place = 0;
      for (; s < count; ++s) {
        const int width = shares[s].width(round, most);
        const int jobs = width * parts * (by_pieces ? shares[s].pieces : 1);
        if (k < jobs) break;
        k -= jobs;
        place += width * shares[s].pieces * elements;
      }
      if (s == count) break;
      act(shares[s], k, place);
    }
    team.team_barrier();
  };
  for (int round = 0; round * most < widest; ++round) {
    for_each(round, true, elements, [&](const team_share& share, int k, int place) {
      const int columns = share.width(round, most) * elements, piece = k / columns;
      const int in_row = k - piece * columns;
      const std::int64_t column = column_of(share, round * most) + in_row;
      if (column < 0 || column >= kernel.width) return;
      int first, end;
      share.places_of(piece, first, end);
      const auto* const values = kernel.values + column;
      sums[place + k] = sum_in_order<compute>(first, end, [&](int p) {
        return convert<compute>(values[kernel.source.position(p) * kernel.values_stride]);
      });
    });
    for_each(round, false, elements, [&](const team_share& share, int k, int place) {
      const int columns = share.width(round, most) * elements;
      const std::int64_t column = column_of(share, round * most) + k;
      if (share.pieces > 1 && column >= 0 && column < kernel.width)
        sums[place + k] = sum_in_order<compute>(0, share.pieces,
                                                [&](int piece) { return sums[place + piece * columns + k]; });
    });
    for_each(round, false, 1, [&](const team_share& share, int k, int place) {
      const std::int64_t column = column_of(share, round * most + k);
      const int live = count_of<tile>(column, kernel.width);
      if (live == 0) return;
      compute sum[elements];
      for (int e = 0; e < elements; ++e) sum[e] = sums[place + k * elements + e];
      update_by_sum(kernel, share.item, {share.row, share.begin, std::int64_t{share.begin} + share.values},
                    column, sum, live);
    });
  }
}

}  // namespace ferry::kernels
