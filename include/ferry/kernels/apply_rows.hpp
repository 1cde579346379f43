#pragma once

#include <ferry/execution/launch.hpp>
#include <ferry/kernels/combine.hpp>
#include <ferry/kernels/prefetch.hpp>
#include <ferry/kernels/row_source.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// For each item of the source: combine the values meant for its row, then apply the operation to it. Each
/// row has one item, so nothing is atomic.
///
/// Device mapping: one thread for each (item, tile), row-major; the threads of a warp hold neighbouring tiles
/// of one row. The loads of a row and of its first value are under way before anything is added. Blocks are small and the loop over a
/// segment's values is kept simple, because what counts is how many warps a multiprocessor has to run while others
/// wait: four values at a time, or two rows for each thread, cost more in registers than they gain (H200). Items past
/// the source's count end at once. Host mapping: one iteration for each item, tiles in a loop.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation>
struct apply_rows {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch

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
      const std::int64_t bytes = width * static_cast<std::int64_t>(sizeof(Value));
      if (const std::int64_t ahead = i + look_ahead::rows(bytes); ahead < items) {
        const row_segment later = source.segment(ahead);
        if (later.row >= 0) {
          look_ahead::ask(values + source.position(later.begin) * values_stride, bytes);
          operation.ask(later.row, width);
        }
      }
      const row_segment rows = source.segment(i);
      if (rows.row < 0) return;
      for (std::int64_t column = 0; column < width; column += Tile::elements)
        one(i, rows, column,
            static_cast<int>(width - column < Tile::elements ? width - column : Tile::elements));
    } else {
      const std::int64_t item = tiles.quotient(i);
      const row_segment rows = source.segment(item);
      if (rows.row >= 0) one(item, rows, (i - item * tiles.divisor()) * Tile::elements, Tile::elements);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t item, const row_segment& rows, std::int64_t column,
                                       int count) const {
    Compute value[Tile::elements];
    typename Operation::template held<Tile, Compute> held;
    operation.load(held, rows.row, column, count);
    combine_segment<Tile, Duplicates>(value, source, rows, values, values_stride, column, count);
    operation.finish(held, item, rows.row, column, value, count);
  }
};

}  // namespace ferry::kernels
