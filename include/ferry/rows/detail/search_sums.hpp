// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/pieces_of_rows.hpp>
#include <ferry/rows/detail/sum_pieces.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Sums the values of a long segment by all threads of a team and updates its row, for a kernel that
/// searches its batch. The segment is that of an item of `kernel`, which is an apply_rows kernel on
/// found_rows.
///
/// Device mapping: the threads stride over (piece, tile) for as many pieces as the buffer holds. Then a
/// thread for each tile adds their sums.
template <class Kernel>
struct team_sums {
  using tile = typename Kernel::tile;
  using compute = typename Kernel::compute;
  static constexpr int bytes = 4096;  ///< shared memory
  static constexpr int slots = bytes / static_cast<int>(tile::elements * sizeof(compute));
  static constexpr int under_way = tile::masked ? 6 : 16;  ///< values of a thread
  static constexpr int fewest_at_once = 4;                 ///< sums of a tile that the buffer has room for

  compute sums[slots][tile::elements];  ///< first the totals of the tiles, then those of pieces, row-major

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void update_row(const Team& team, const Kernel& kernel, std::int64_t item) {
    const row_segment rows = kernel.source.segment(item);
    const std::int64_t origin = first_column<tile>(kernel.operation, item, rows.row);
    const auto tiles_of_row = static_cast<int>(kernel.tiles.divisor());
    const int most_tiles = slots / fewest_at_once;
    for (int first = 0; first < tiles_of_row; first += most_tiles) {
      const int tiles = tiles_of_row - first < most_tiles ? tiles_of_row - first : most_tiles;
      add_up(team, kernel, rows, origin + std::int64_t{first} * tile::elements, tiles);
      for (int t = team.team_rank(); t < tiles; t += team.team_size()) {
        const std::int64_t column = origin + std::int64_t{first + t} * tile::elements;
        if (const int count = count_of<tile>(column, kernel.width); count != 0)
          update_by_sum(kernel, item, rows, column, sums[t], count);
      }
      team.team_barrier();
    }
  }

 private:
  /// The totals of tiles that begin at a column.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void add_up(const Team& team, const Kernel& kernel, const row_segment& rows,
                                          std::int64_t origin, int tiles) {
    const piece_cut cut(static_cast<std::uint32_t>(rows.end - rows.begin));
    const auto pieces = static_cast<int>(cut.count);
    const int at_once = slots / tiles - 1;
    for (int piece = 0; piece < pieces; piece += at_once) {
      const int live = pieces - piece < at_once ? pieces - piece : at_once;
      for (int i = team.team_rank(); i < live * tiles; i += team.team_size()) {
        const int number = i / tiles;
        const std::int64_t column = origin + std::int64_t{i - number * tiles} * tile::elements;
        if (const int count = count_of<tile>(column, kernel.width); count != 0) {
          const auto k = static_cast<std::uint32_t>(piece + number);
          compute sum[tile::elements];
          sum_values<under_way, tile>(
              sum, kernel.source, rows.begin + k * cut.size,
              rows.begin + cut.end(k, static_cast<std::uint32_t>(rows.end - rows.begin)), kernel.values,
              kernel.values_stride, column, count);
          for (int e = 0; e < tile::elements; ++e) sums[tiles + i][e] = sum[e];
        }
      }
      team.team_barrier();
      for (int t = team.team_rank(); t < tiles; t += team.team_size())
        for (int number = 0; number < live; ++number)
          for (int e = 0; e < tile::elements; ++e) {
            const compute term = sums[tiles + number * tiles + t][e];
            sums[t][e] = piece + number == 0 ? term : sums[t][e] + term;
          }
      team.team_barrier();
    }
  }
};

}  // namespace ferry::kernels
