#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/prefetch.hpp>
#include <ferry/runtime/detail/launch.hpp>

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
/// the source's count end at once. Host mapping: one run of neighbouring items for each thread. What the rows share is
/// held in copies that no store can reach, so a compiler keeps it in registers; rows of one value, the common case,
/// have a loop without the sum of several.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation>
struct apply_rows {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch
  static constexpr bool takes_runs = Tile::host;     ///< see launch

  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::int64_t items;
  detail::fast_divisor tiles;
  Operation operation;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (source.blocked() || operation.is_refused()) return;
    const std::int64_t item = tiles.quotient(i);
    const row_segment rows = source.segment(item);
    if (rows.row >= 0)
      one<Tile, false>(source, operation, item, rows, (i - item * tiles.divisor()) * Tile::elements,
                       Tile::elements);
  }

  void operator()(const detail::host_run& run) const {
    if (source.blocked() || operation.is_refused()) return;
    const Source from = source;
    const Operation to = operation;
    const std::int64_t all = from.items(items);
    const std::int64_t end = run.end(all);
    const std::int64_t bytes = width * static_cast<std::int64_t>(sizeof(Value));
    const std::int64_t ahead = look_ahead::rows(bytes);
    for (std::int64_t i = run.begin(all); i < end; ++i) {
      if (i + ahead < all) {
        const row_segment later = from.segment_within(i + ahead);
        if (later.row >= 0) {
          look_ahead::prefetch(values + from.position(later.begin) * values_stride, bytes);
          to.prefetch(later.row, width);
        }
      }
      const row_segment rows = from.segment_within(i);
      if (rows.row < 0) continue;
      if (rows.end - rows.begin == 1)
        whole_row<true>(from, to, i, rows);
      else
        combined_row(i);
    }
  }

 private:
  /// A row of several values. Apart from the others, whose loop it would cost registers.
  [[gnu::noinline]] void combined_row(std::int64_t item) const {
    whole_row<false>(source, operation, item, source.segment_within(item));
  }

  template <bool Single>
  KOKKOS_FORCEINLINE_FUNCTION void whole_row(const Source& from, const Operation& to, std::int64_t item,
                                             const row_segment& rows) const {
    constexpr int most = Tile::elements;
    std::int64_t column = 0;
    for (; column + most <= width; column += most)
      one<whole_host_tile<most>, Single>(from, to, item, rows, column, most);
    // Vectors of 4 elements: a length that is a multiple of theirs needs no loop for what is left.
    if (const int fours = static_cast<int>(width - column) & 12; fours > 0) {
      one<fours_host_tile, Single>(from, to, item, rows, column, fours);
      column += fours;
    }
    for (; column < width; ++column) one<whole_host_tile<1>, Single>(from, to, item, rows, column, 1);
  }

  template <class Part, bool Single>
  KOKKOS_FORCEINLINE_FUNCTION void one(const Source& from, const Operation& to, std::int64_t item,
                                       const row_segment& rows, std::int64_t column, int count) const {
    Compute value[Part::elements];
    typename Operation::template held<Part, Compute> held;
    to.load(held, rows.row, column, count);
    if constexpr (Single)
      load_tile<Part>(value, values + from.position(rows.begin) * values_stride + column, count);
    else
      combine_segment<Part, Duplicates>(value, from, rows, values, values_stride, column, count);
    to.finish(held, item, rows.row, column, value, count);
  }
};

}  // namespace ferry::kernels
