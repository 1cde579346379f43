#pragma once

#include <ferry/execution/launch.hpp>
#include <ferry/kernels/combine.hpp>
#include <ferry/kernels/row_source.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// For each item of the source: combine the values meant for its row, then apply the operation to it. Each
/// row has one item, so nothing is atomic.
///
/// Device mapping: one thread for each (item, tile), row-major; the threads of a warp hold neighbouring tiles
/// of one row. Items past the source's count end at once. Host mapping: one iteration for each item, tiles in
/// a loop.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation>
struct apply_rows {
  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  detail::fast_divisor tiles;
  Operation operation;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (source.blocked()) return;
    if constexpr (Tile::partial) {
      const row_segment rows = source.segment(i);
      if (rows.row < 0) return;
      for (std::int64_t column = 0; column < width; column += Tile::elements)
        one(i, rows, column,
            static_cast<int>(width - column < Tile::elements ? width - column : Tile::elements));
    } else {
      const std::int64_t item = tiles.quotient(i);
      const row_segment rows = source.segment(item);
      if (rows.row < 0) return;
      one(item, rows, (i - item * tiles.divisor()) * Tile::elements, Tile::elements);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t item, const row_segment& rows, std::int64_t column,
                                       int count) const {
    Compute value[Tile::elements];
    combine_segment<Tile, Duplicates>(value, source, rows, values, values_stride, column, count);
    operation.template apply<Tile>(item, rows.row, column, value, count);
  }
};

}  // namespace ferry::kernels
