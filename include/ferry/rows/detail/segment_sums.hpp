// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Sums of rows that are named often, in the order of sum_pieces.
namespace ferry::kernels {

/// total += the terms [begin, end), one after the other. `load(term, k)` loads term k; N loads are under way.
template <class Tile, int N, class Compute, class Number, class Load>
KOKKOS_FORCEINLINE_FUNCTION void add_terms(Compute (&total)[Tile::elements], Number begin, Number end,
                                           int count, const Load& load) {
  FERRY_NOT_UNROLLED
  for (; begin < end; begin += N) {
    Compute term[N][Tile::elements];
    for (int j = 0; j < N; ++j) load(term[j], begin + j < end ? begin + j : end - 1);
    for (int j = 0; j < N; ++j)
      if (begin + j < end)
        for (int e = 0; e < live<Tile>(count); ++e) total[e] += term[j][e];
  }
}

/// The value at a place of a source, for columns [column, column + count). Adds: it is added to something.
template <class Tile, bool Adds, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void load_value(Compute (&tile)[Tile::elements], const Source& source,
                                            std::int64_t place, const Value* values, std::int64_t stride,
                                            std::int64_t column, int count) {
  const Value* const value = values + row_offset<Tile>(source.position(place), stride) + column;
  if constexpr (Adds)
    load_addends<Tile>(tile, value, count);
  else
    load_tile<Tile>(tile, value, count);
  if constexpr (requires { Source::adjusts; }) source.template adjust<Tile>(tile, place, column, count);
}

/// The columns of the values that a row has.
struct column_range {
  std::int64_t first = 0;
  std::int64_t width = 0;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION column_range of_row(std::int64_t) const { return *this; }
};

/// Sums each piece of a plan's long segments. Another kernel then adds the sums of a segment's pieces.
///
/// Device mapping: one thread per (row of the buffer, tile), row-major. A batch that names one row has 256
/// pieces, whose threads need 16 loads in flight to read at the memory's rate.
template <class Compute, class Tile, class Source, class Value, class Columns>
struct sum_pieces_of_segments {
  static constexpr unsigned int most_threads = 128;  ///< see launch_each
  static constexpr unsigned int blocks_at_once = 5;
  static constexpr unsigned int block_rounds = 8;
  static constexpr int under_way = sizeof(Compute) * Tile::elements > 16 ? 8 : 16;

  Source source;
  const std::int64_t* presence;  ///< 0: no segment is long; null: some may be
  const std::int64_t* order;     ///< of the plan
  const std::int64_t* inverse;   ///< of the plan
  const Value* values;
  std::int64_t stride;
  Columns columns;
  ferry::detail::fast_divisor tiles;  ///< of a row of the buffer
  std::int64_t rows;                  ///< of the buffer

  /// Work items, see launch_each.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t work_items() const {
    return presence == nullptr || *presence != 0 ? rows * tiles.divisor() : 0;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = tiles.quotient(i);
    // A piece with this row has the last of the places that share it.
    const std::int64_t segment = inverse[order[(row + 1) * sum_pieces::least - 1]];
    if (segment < 0) return;
    const auto begin = static_cast<std::uint32_t>(source.segment_begin[segment]);
    const auto size = static_cast<std::uint32_t>(source.segment_begin[segment + 1]) - begin;
    const piece_cut pieces(size);
    const auto number = static_cast<std::uint32_t>(row - long_sums::row_of(begin));
    if (!long_sums::has(size) || number >= pieces.count) return;
    const column_range part = columns.of_row(source.unique_rows[segment]);
    const std::int64_t column = (i - row * tiles.divisor()) * Tile::elements;
    if (column >= part.width) return;
    const auto load = [&](Compute(&term)[Tile::elements], std::int64_t place) {
      load_value<Tile, true>(term, source, place, values + part.first, stride, column, Tile::elements);
    };
    const std::uint32_t first = begin + number * pieces.size;
    Compute total[Tile::elements];
    load(total, first);
    add_terms<Tile, under_way>(total, first + 1, begin + pieces.end(number, size), Tile::elements, load);
    store_tile<Tile>(total, source.sums.template row<Compute>(row) + column, Tile::elements);
  }
};

}  // namespace ferry::kernels
