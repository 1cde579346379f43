// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/sum_pieces.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

namespace ferry::kernels {

/// Segments whose values are cut into pieces. A kernel that searches its batch sums them itself; in other
/// batches two kernels do so before the one that updates, so that no thread of it waits for one row. Each
/// piece has a row in a buffer: pieces begin at least 32 places apart, so place / 32 is a row that no other
/// piece has. The sum of a segment replaces that of its first piece.
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

/// The segments of a plan, found by the places of their pieces.
struct segment_finder {
  const std::int64_t* order;
  const std::int64_t* inverse;
  const std::int64_t* segment_begin;

  struct range {
    std::int64_t begin, end;
  };
  /// The segment of the last place of a row of the buffer: that of the piece in this row, since a piece
  /// covers the last place of the row in which it begins. Empty if it is not long.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION range long_segment(std::int64_t slot) const {
    const std::int64_t segment = inverse[order[(slot + 1) * sum_pieces::least - 1]];
    if (segment < 0) return {0, 0};
    const range places{segment_begin[segment], segment_begin[segment + 1]};
    return long_segments::has(places.begin, places.end) ? places : range{0, 0};
  }
};

/// tile = the sum of values [begin, end) of a segment, one after the other, for the columns of a device's
/// tile: the loads of several values are in flight at once.
template <int UnderWay, class Tile, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void sum_values(Compute (&tile)[Tile::elements], const Source& source,
                                            std::int64_t begin, std::int64_t end, const Value* values,
                                            std::int64_t stride, std::int64_t column, int count) {
  const auto load = [&](Compute(&target)[Tile::elements], std::int64_t place) {
    load_tile<Tile>(target, values + source.position(place) * stride + column, count);
    if constexpr (requires { Source::adjusts; }) source.template adjust<Tile>(target, place, column, count);
  };
  Compute next[UnderWay][Tile::elements];
  const auto add_several = [&](std::int64_t k) {
    for (int j = 0; j < UnderWay; ++j) load(next[j], k + j);
    for (int j = 0; j < UnderWay; ++j)
      for (int e = 0; e < Tile::elements; ++e) tile[e] += next[j][e];
  };
  const auto add_one = [&](std::int64_t k) {
    load(next[0], k);
    for (int e = 0; e < Tile::elements; ++e) tile[e] += next[0][e];
  };
  load(tile, begin);
  std::int64_t k = begin + 1;
  // More of the loops at once would cost a device's kernel registers.
  KOKKOS_IF_ON_DEVICE((_Pragma("unroll 1") for (; k + UnderWay <= end; k += UnderWay) add_several(k);
                       _Pragma("unroll 1") for (; k < end; ++k) add_one(k);))
  KOKKOS_IF_ON_HOST(
      (for (; k + UnderWay <= end; k += UnderWay) add_several(k); for (; k < end; ++k) add_one(k);))
}

/// The sums of the pieces of long segments.
///
/// Device mapping: one thread per (row of the buffer, tile), row-major. A row has at most one piece. Most
/// have none, and their threads end after three loads. A row that all positions name has 256 pieces, whose
/// threads need 16 loads in flight to read at the memory's rate.
template <class Compute, class Value, class Source>
struct sum_segment_pieces {
  static constexpr int under_way = 16;
  static constexpr unsigned int most_threads = 128;  ///< see launch

  segment_finder segments;
  Source source;
  const Value* values;
  std::int64_t stride;
  Compute* sums;
  std::int64_t width;
  bool packed;  ///< whether a tile is a packet
  detail::fast_divisor tiles;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t slot = tiles.quotient(i);
    const std::int64_t number = i - slot * tiles.divisor();
    const auto [begin, end] = segments.long_segment(slot);
    if (begin == end) return;
    const sum_pieces pieces(end - begin);
    const std::int64_t window = slot * sum_pieces::least;
    const std::int64_t piece = begin >= window ? 0 : (window - begin + pieces.size - 1) / pieces.size;
    if (piece >= pieces.count || begin + piece * pieces.size >= window + sum_pieces::least) return;
    const segment_finder::range places{begin + piece * pieces.size, begin + pieces.end(piece, end - begin)};
    if (packed)
      sum<packed_tile>(places, slot, number * packed_tile::elements);
    else
      sum<single_tile>(places, slot, number);
  }

 private:
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void sum(const segment_finder::range& places, std::int64_t slot,
                                       std::int64_t column) const {
    Compute total[Tile::elements];
    sum_values<under_way, Tile>(total, source, places.begin, places.end, values, stride, column,
                                Tile::elements);
    store_tile<Tile>(total, sums + slot * width + column, Tile::elements);
  }
};

/// The sums of long segments, from those of their pieces.
///
/// Device mapping: one thread per (row of the buffer, column), row-major. The threads of rows in which no
/// long segment begins end after three loads. The others read the second level of cache.
template <class Number>
struct add_pieces {
  static constexpr int under_way = 8;

  segment_finder segments;
  Number* sums;
  ferry::detail::fast_divisor width;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t slot = width.quotient(i);
    const auto [begin, end] = segments.long_segment(slot);
    if (begin == end || long_segments::slot(begin) != slot) return;
    const sum_pieces pieces(end - begin);
    Number* const column = sums + (i - slot * width.divisor());
    const auto sum_of = [&, first = begin](std::int64_t piece) {
      return column[long_segments::slot(first + piece * pieces.size) * width.divisor()];
    };
    Number total = sum_of(0);
    std::int64_t piece = 1;
    for (; piece + under_way <= pieces.count; piece += under_way) {
      Number next[under_way];
      for (int k = 0; k < under_way; ++k) next[k] = sum_of(piece + k);
      for (int k = 0; k < under_way; ++k) total += next[k];
    }
    for (; piece < pieces.count; ++piece) total += sum_of(piece);
    column[slot * width.divisor()] = total;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Adds the sums of the pieces of each long segment: the sum of a segment is then in the row of its first
/// piece. Compiled for the devices that Kokkos has.
template <class Number, class Exec>
void add_sums_of_pieces(const Exec& exec, const std::string& label, const kernels::segment_finder& segments,
                        Number* sums, std::int64_t slots, std::int64_t width);

}  // namespace ferry::detail
