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
/// Device mapping: one thread for each (group of `Each` items, tile), row-major; the threads of a warp hold neighbouring
/// tiles of one row. The loads of a group are under way before its first store, and blocks are small, so that a
/// multiprocessor has others to run while one waits: 54 us instead of 61 for a step of SGD on 131072 rows of 512 bytes
/// (H200, where copying as many bytes takes 50). Items past the source's count end at once. Host mapping: one iteration
/// for each item, tiles in a loop.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation,
          int Each = 1>
struct apply_rows {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch
  static_assert(!Tile::partial || Each == 1);

  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::int64_t items;
  detail::fast_divisor tiles;
  Operation operation;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (source.blocked() || operation.is_refused()) return;
    if constexpr (Tile::partial) {
      const row_segment rows = source.segment(i);
      if (rows.row < 0) return;
      for (std::int64_t column = 0; column < width; column += Tile::elements)
        one(i, rows, column,
            static_cast<int>(width - column < Tile::elements ? width - column : Tile::elements));
    } else {
      const std::int64_t group = tiles.quotient(i);
      group_of(group * Each, (i - group * tiles.divisor()) * Tile::elements);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t item, const row_segment& rows, std::int64_t column,
                                       int count) const {
    Compute value[Tile::elements];
    typename Operation::template held<Tile, Compute> held;
    combine_segment<Tile, Duplicates>(value, source, rows, values, values_stride, column, count);
    operation.load(held, rows.row, column, count);
    operation.finish(held, item, rows.row, column, value, count);
  }

  KOKKOS_FORCEINLINE_FUNCTION void group_of(std::int64_t first, std::int64_t column) const {
    row_segment rows[Each];
    Compute value[Each][Tile::elements];
    typename Operation::template held<Tile, Compute> held[Each];
    for (int k = 0; k < Each; ++k)
      if (first + k < items) rows[k] = source.segment(first + k);
    for (int k = 0; k < Each; ++k) {
      if (rows[k].row < 0) continue;
      operation.load(held[k], rows[k].row, column, Tile::elements);
      first_of_segment<Tile, Duplicates>(value[k], source, rows[k], values, values_stride, column,
                                         Tile::elements);
    }
    for (int k = 0; k < Each; ++k) {
      if (rows[k].row < 0) continue;
      rest_of_segment<Tile, Duplicates>(value[k], source, rows[k], values, values_stride, column,
                                        Tile::elements);
      operation.finish(held[k], first + k, rows[k].row, column, value[k], Tile::elements);
    }
  }
};

}  // namespace ferry::kernels
