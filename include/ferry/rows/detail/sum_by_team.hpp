// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/pieces_of_rows.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/rows/detail/sum_pieces.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Updates a row by the values of a long segment, as `kernel` would, with all threads of a team. `memory` is
/// the team's, for the sums of all pieces of a tile at least.
///
/// Device mapping: the pieces of some neighbouring tiles are summed, a thread for each piece and tile, then a
/// thread for each tile adds them up.
template <class Team, int Bytes, class Kernel>
KOKKOS_FORCEINLINE_FUNCTION void update_by_team(const Team& team, unsigned char (&memory)[Bytes],
                                                const Kernel& kernel, std::int64_t item,
                                                const row_segment& rows) {
  using tile = typename Kernel::tile;
  using compute = typename Kernel::compute;
  const auto values = static_cast<std::uint32_t>(rows.end - rows.begin);
  const piece_cut cut(values);
  const auto pieces = static_cast<int>(cut.count);
  const auto tiles = static_cast<int>(kernel.tiles.divisor());
  const std::int64_t origin = first_column<tile>(kernel.operation, item, rows.row);
  auto* const sums = reinterpret_cast<compute*>(memory);
  const int fit = Bytes / (pieces * tile::elements * static_cast<int>(sizeof(compute)));
  for (int begin = 0; begin < tiles; begin += fit) {
    const int width = tiles - begin < fit ? tiles - begin : fit;
    for (int k = team.team_rank(); k < width * pieces; k += team.team_size()) {
      const int piece = k / width;
      const std::int64_t column = origin + std::int64_t{begin + k - piece * width} * tile::elements;
      const int count = count_of<tile>(column, kernel.width);
      if (count == 0) continue;
      const auto number = static_cast<std::uint32_t>(piece);
      compute sum[tile::elements];
      // A piece of 32 values: one, five times six, and one.
      sum_values<6, tile>(sum, kernel.source, rows.begin + std::int64_t{number} * cut.size,
                          rows.begin + cut.end(number, values), kernel.values, kernel.values_stride, column,
                          count);
      for (int e = 0; e < tile::elements; ++e) sums[k * tile::elements + e] = sum[e];
    }
    team.team_barrier();
    for (int k = team.team_rank(); k < width; k += team.team_size()) {
      const std::int64_t column = origin + std::int64_t{begin + k} * tile::elements;
      const int count = count_of<tile>(column, kernel.width);
      if (count == 0) continue;
      compute sum[tile::elements];
      for (int e = 0; e < tile::elements; ++e) sum[e] = sums[k * tile::elements + e];
      for (int piece = 1; piece < pieces; ++piece)
        for (int e = 0; e < tile::elements; ++e) sum[e] += sums[(piece * width + k) * tile::elements + e];
      update_by_sum(kernel, item, rows, column, sum, count);
    }
    team.team_barrier();
  }
}

}  // namespace ferry::kernels
