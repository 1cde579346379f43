// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/block_bounds.hpp>
#include <ferry/quantized/detail/quantized_weights.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// True if each block of a row is written by one lane of a device alone.
template <class Weights, class Tile>
inline constexpr bool has_lone_blocks = false;
template <class Q, bool Random, class Tile>
inline constexpr bool has_lone_blocks<quantized_weights<Q, Random>, Tile> =
    Q::block != 0 && !Tile::host && sharing_lanes<Tile>(Q::block) == 0;

/// Writes the new weights of a row with the scales that its blocks need: of a block that is the row, of
/// blocks that lanes have, a tile each, and of others, each of one thread.
///   tile_at(column, count)                  a tile of the row, with `weight`
///   store(target, tile, column, count)      writes it, the weights to a row_view
template <class Tile, class Weights, class Walk, class TileAt, class Store>
KOKKOS_FORCEINLINE_FUNCTION void store_blocks(const Weights& table, const typename Weights::row_view& row,
                                              std::int64_t width, const Walk& walk, const TileAt& tile_at,
                                              const Store& store) {
  constexpr int block = Weights::block, sharers = sharing_lanes<Tile>(block);
  const auto load = [](float(&value)[Tile::elements], const auto& tile, int count) {
    for (int e = 0; e < live<Tile>(count); ++e) value[e] = convert<float>(tile.weight[e]);
  };
  const auto store_tile = [&](const auto& target, std::int64_t column, int count) {
    store(target, tile_at(column, count), column, count);
  };
  if constexpr (block == 0) {
    const auto scale = table.scale_of(walk.template bounds<block_bounds>(
        [&](std::int64_t column, int count, float(&value)[Tile::elements]) {
          load(value, tile_at(column, count), count);
        }));
    const auto target = table.scaled_by(row, scale);
    walk.for_each_tile([&](std::int64_t column, int count) { store_tile(target, column, count); });
    walk.perform([&] { table.store_scale(target, width, 0, scale); });
  } else if constexpr (sharers != 0) {
    walk.for_each_tile([&](std::int64_t column, int count) {
      const auto& tile = tile_at(column, count);
      float value[Tile::elements];
      load(value, tile, count);
      const auto scale = table.scale_of(walk.template bounds_among<block_bounds, sharers>(value));
      const auto target = table.scaled_by(row, scale);
      store(target, tile, column, count);
      if (column % block == 0) table.store_scale(target, width, column / block, scale);
    });
  } else {
    for (std::int64_t number = walk.lane(); number * block < width; number += walk.lanes()) {
      const std::int64_t first = number * block, end = first + block;
      block_bounds::side_by_side bounds;
      for_each_tile_between<Tile>(first, end, [&](std::int64_t column, int count) {
        float value[Tile::elements];
        load(value, tile_at(column, count), count);
        bounds.widen(value, live<Tile>(count));
      });
      const auto scale = table.scale_of(bounds.whole());
      const auto target = table.scaled_by(row, scale);
      for_each_tile_between<Tile>(first, end,
                                  [&](std::int64_t column, int count) { store_tile(target, column, count); });
      table.store_scale(target, width, number, scale);
    }
  }
}

}  // namespace ferry::kernels
