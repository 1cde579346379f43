// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// Before a loop that a device's compiler must not unroll: more of the loop at once would cost registers.
#if defined(__CUDA_ARCH__)
#define FERRY_LOOP_OF_DEVICE _Pragma("unroll 1")
#else
#define FERRY_LOOP_OF_DEVICE
#endif

namespace ferry::kernels {

/// Segments whose values are cut into pieces. A kernel that searches its batch sums them itself. In other
/// batches each piece has a thread for each column, so that no thread waits for one row. Each
/// piece has a row in a buffer: pieces begin at least 32 places apart, so place / 32 is a row that no other
/// piece has.
struct long_segments {
  KOKKOS_FORCEINLINE_FUNCTION static bool has(std::int64_t begin, std::int64_t end) {
    return sum_pieces::cuts(end - begin);
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t slot(std::int64_t begin) {
    return begin / sum_pieces::least;
  }
  /// Rows of the buffer for `positions` positions.
  static std::int64_t slots(std::int64_t positions) { return positions / sum_pieces::least; }
};

/// A piece of a long segment. Places are below 2^31, so 32 bits hold them.
struct long_piece {
  std::uint32_t segment = none;
  std::uint32_t begin = 0, end = 0;  ///< places of the segment
  std::uint32_t number = 0;          ///< of the piece

  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// The piece in a row of the buffer. It covers the last place of the places that share the row, or it ends
  /// with the segment and has no row.
  KOKKOS_FORCEINLINE_FUNCTION static long_piece in_slot(const segment_pieces& pieces,
                                                        const std::int64_t* segment_begin,
                                                        std::uint32_t slot) {
    constexpr auto least = static_cast<std::uint32_t>(sum_pieces::least);
    const std::uint32_t window = slot * least;
    const auto segment = static_cast<std::uint32_t>(pieces.inverse[pieces.order[window + least - 1]]);
    if (segment == none) return {};
    const auto begin = static_cast<std::uint32_t>(segment_begin[segment]);
    const auto end = static_cast<std::uint32_t>(segment_begin[segment + 1]);
    if (!long_segments::has(begin, end)) return {};
    const piece_cut cut(end - begin);
    const std::uint32_t number = begin >= window ? 0 : (window - begin + cut.size - 1) / cut.size;
    if (number >= cut.count || begin + number * cut.size >= window + least) return {};
    return {segment, begin, end, number};
  }
};

/// The sums of a plan's long segments, in one launch: those of pieces, which a buffer holds, then those of
/// segments. No thread waits for another one: the last of the threads that sum pieces of a group of tiles
/// adds them up and goes on with the segment.
///
/// Device mapping: one thread per (row of the buffer, column of the tiles), row-major. A row has at most one
/// piece. A row that all positions name has 256 pieces, whose threads need 16 loads in flight to read at the
/// memory's rate; one column for each thread leaves registers for them.
///
/// Narrow: the positions are those of the plan's order, and numbers of 32 bits hold them and the stride,
/// which saves registers.
template <class Compute, class Tile, class Source, class Value, bool Narrow, std::uint32_t UnderWay>
struct piece_sums {
  const Source& source;
  const Value* values;
  std::int64_t stride;
  std::int64_t width;
  const ferry::detail::fast_divisor& tiles;  ///< of a row

  static constexpr std::uint32_t under_way = UnderWay;
  static constexpr bool adjusts = requires { Source::adjusts; };

  /// Work item i. `first(segment)` is the first column of the tiles of the segment's row; `finish(piece,
  /// column, value, count)` takes the sums of a tile.
  template <class First, class Finish>
  KOKKOS_FORCEINLINE_FUNCTION void sum(std::int64_t i, const First& first, const Finish& finish) const {
    {
      const place_of_item place(*this, i, first);
      if (place.column < 0) return;
      sum_column(place);
    }
    Kokkos::memory_fence();
    // Looked up once more, which costs less than registers in the loop above.
    const place_of_item place(*this, i, first);
    const piece_cut cut(place.piece.end - place.piece.begin);
    const auto tiles_of_row = static_cast<std::uint32_t>(tiles.divisor());
    const std::uint32_t tiles_of_group = piece_counters::tiles(tiles_of_row);
    const std::uint32_t group = place.tile / tiles_of_group;
    const std::uint32_t begin = group * tiles_of_group;
    const std::uint32_t end = begin + tiles_of_group < tiles_of_row ? begin + tiles_of_group : tiles_of_row;
    const std::int64_t columns = within(place.origin + std::int64_t{end} * Tile::elements) -
                                 within(place.origin + std::int64_t{begin} * Tile::elements);
    if (!is_last(piece_counters::number(place.piece.begin, group),
                 static_cast<std::uint32_t>(columns) * cut.count))
      return;
    FERRY_LOOP_OF_DEVICE
    for (std::uint32_t tile = begin; tile < end; ++tile) {
      const std::int64_t column = place.origin + std::int64_t{tile} * Tile::elements;
      if (const int count = count_of<Tile>(column, width); count != 0) {
        Compute value[Tile::elements];
        add_pieces(value, place.piece, cut, column, count);
        finish(place.piece, column, value, count);
      }
    }
  }

 private:
  struct place_of_item {
    std::uint32_t slot;
    std::uint32_t tile = 0;  ///< of the row
    long_piece piece;
    std::int64_t origin = 0;   ///< the first column of tile 0
    std::int64_t column = -1;  ///< -1: there is nothing to sum

    template <class First>
    KOKKOS_FORCEINLINE_FUNCTION place_of_item(const piece_sums& sums, std::int64_t i, const First& first) {
      const std::int64_t tile_of_all = i / Tile::elements;
      slot = static_cast<std::uint32_t>(sums.tiles.quotient(tile_of_all));
      piece = long_piece::in_slot(sums.source.pieces, sums.source.segment_begin, slot);
      if (piece.segment == long_piece::none) return;
      tile = static_cast<std::uint32_t>(tile_of_all - slot * sums.tiles.divisor());
      origin = first(piece.segment);
      column = origin + std::int64_t{tile} * Tile::elements + i % Tile::elements;
      if (column >= sums.width) column = -1;
    }
  };

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t within(std::int64_t column) const {
    return column < 0 ? 0 : column < width ? column : width;
  }
  /// The sum of a piece in a column.
  KOKKOS_FORCEINLINE_FUNCTION void sum_column(const place_of_item& place) const {
    const long_piece& piece = place.piece;
    const piece_cut cut(piece.end - piece.begin);
    std::uint32_t k = piece.begin + piece.number * cut.size;
    const std::uint32_t end = piece.begin + cut.end(piece.number, piece.end - piece.begin);
    const Value* const in_column = values + place.column;
    using position_number = std::conditional_t<Narrow, std::uint32_t, std::int64_t>;
    const auto position_at = [&](std::uint32_t number) {
      if constexpr (Narrow)
        return static_cast<std::uint32_t>(source.pieces.order[number]);
      else
        return source.position(number);
    };
    const auto value_at = [&](position_number position, [[maybe_unused]] std::uint32_t number) {
      Compute loaded[1];
      if constexpr (Narrow)
        loaded[0] = convert<Compute>(in_column[std::uint64_t{position} * static_cast<std::uint32_t>(stride)]);
      else
        loaded[0] = convert<Compute>(in_column[position * stride]);
      if constexpr (adjusts) source.template adjust<single_tile>(loaded, number, place.column, 1);
      return loaded[0];
    };
    Compute total = value_at(position_at(k), k);
    ++k;
    FERRY_LOOP_OF_DEVICE
    for (; k + under_way <= end; k += under_way) {
      position_number position[under_way];
      Compute next[under_way];
      for (std::uint32_t j = 0; j < under_way; ++j) position[j] = position_at(k + j);
      for (std::uint32_t j = 0; j < under_way; ++j) next[j] = value_at(position[j], k + j);
      for (std::uint32_t j = 0; j < under_way; ++j) total += next[j];
    }
    FERRY_LOOP_OF_DEVICE
    for (; k < end; ++k) total += value_at(position_at(k), k);
    static_cast<Compute*>(source.long_sums)[place.slot * source.long_stride + place.column] = total;
  }
  /// The sum of the sums of pieces, for a tile.
  KOKKOS_FORCEINLINE_FUNCTION void add_pieces(Compute (&value)[Tile::elements], const long_piece& piece,
                                              const piece_cut& cut, std::int64_t column, int count) const {
    const auto* const sums = static_cast<const Compute*>(source.long_sums) + column;
    const auto load = [&](Compute(&target)[Tile::elements], std::uint32_t k) {
      load_tile<Tile>(target, sums + (piece.begin + k * cut.size) / piece_cut::least * source.long_stride,
                      count);
    };
    constexpr std::uint32_t at_once = 16 / Tile::elements;
    load(value, 0);
    std::uint32_t k = 1;
    FERRY_LOOP_OF_DEVICE
    for (; k + at_once <= cut.count; k += at_once) {
      Compute next[at_once][Tile::elements];
      for (std::uint32_t j = 0; j < at_once; ++j) load(next[j], k + j);
      for (std::uint32_t j = 0; j < at_once; ++j)
        for (int e = 0; e < Tile::elements; ++e) value[e] += next[j][e];
    }
    FERRY_LOOP_OF_DEVICE
    for (; k < cut.count; ++k) {
      Compute next[Tile::elements];
      load(next, k);
      for (int e = 0; e < Tile::elements; ++e) value[e] += next[e];
    }
  }
  /// Counts a sum of a piece that is written. True if it is the last of the terms: the thread sees the
  /// others.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool is_last(std::int64_t counter, std::uint32_t terms) const {
    unsigned int* const arrived = source.pieces.arrived + counter;
    if (Kokkos::atomic_fetch_add(arrived, 1u) + 1 != terms) return false;
    Kokkos::memory_fence();
    *arrived = 0;
    return true;
  }
};

/// The sums of long segments, for kernels after this one: that of a segment replaces that of its first piece.
template <class Compute, class Tile, class Value, class Source>
struct sum_segments {
  static constexpr unsigned int most_threads = 128;  ///< see launch_each
  static constexpr unsigned int blocks_at_once = 8;
  static constexpr unsigned int block_rounds = 1;

  Source source;
  const Value* values;
  std::int64_t stride;
  std::int64_t width;
  ferry::detail::fast_divisor tiles;

  /// Work items for a row of the buffer.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t columns() const { return tiles.divisor() * Tile::elements; }

  /// False if no segment is long.
  [[nodiscard]] KOKKOS_FUNCTION bool has_work() const { return source.pieces.has(0); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (!source.pieces.has(i)) return;
    auto* const sums = static_cast<Compute*>(source.long_sums);
    piece_sums<Compute, Tile, Source, Value, false, 16>{source, values, stride, width, tiles}.sum(
        i, [](std::uint32_t) { return std::int64_t{0}; },
        [&](const long_piece& piece, std::int64_t column, const Compute(&value)[Tile::elements], int count) {
          store_tile<Tile>(value, sums + long_segments::slot(piece.begin) * source.long_stride + column,
                           count);
        });
  }
};

/// words[i] = 0.
struct clear_counters {
  unsigned int* words;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { words[i] = 0; }
};

}  // namespace ferry::kernels
