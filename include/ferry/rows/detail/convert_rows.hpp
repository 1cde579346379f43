// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// out[position(k)] = table[row(k)] for each item k of the source, converted to another element type. Rows
/// that the source does not resolve keep their contents. Each element is converted once, from In to Out.
///
/// Device mapping: one thread per tile of a row, row-major, so that neighbouring threads read and write
/// neighbouring bytes. A tile is packed if `packed` says that every row of both sides consists of packets,
/// else masked. Both cases share one kernel: the branch is uniform, and the kernel has many instances
/// already.
template <class Out, class In, class Source>
struct convert_rows {
  const In* table;
  std::int64_t table_stride;
  Out* out;
  std::int64_t out_stride;
  std::int64_t width;
  detail::fast_divisor tiles;
  bool packed;
  Source source;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = tiles.quotient(i);
    const std::int64_t tile = i - item * tiles.divisor();
    const std::int64_t row = source.row(item, tile == 0);
    if (row < 0) return;
    const std::int64_t position = source.position(item);
    if (packed)
      convert_tile<packed_tile_of<Out, In>>(position, row, tile);
    else
      convert_tile<masked_tile>(position, row, tile);
  }

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void convert_tile(std::int64_t position, std::int64_t row,
                                                std::int64_t tile) const {
    Out* const target = out + position * out_stride;
    std::int64_t column = tile * Tile::elements;
    if constexpr (Tile::masked) column = masked_column<Tile>(tile, target);
    const int count = count_of<Tile>(column, width);
    if (count == 0) return;
    In value[Tile::elements];
    load_tile<Tile>(value, table + row * table_stride + column, count);
    store_tile<Tile>(value, target + column, count);
  }
};

}  // namespace ferry::kernels
