// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Segments of more than `most` values are summed with many loads in flight: in small batches by the kernels
/// that update rows, before they load anything else; in others by a kernel of their own, so that no thread
/// that updates waits for one row. Each sum has a row in a buffer. Long segments begin more than `most`
/// places apart, so begin / (most + 1) is a row that no other segment has.
struct long_segments {
  static constexpr std::int64_t most = 64;

  KOKKOS_FUNCTION static bool has(std::int64_t begin, std::int64_t end) { return end - begin > most; }
  KOKKOS_FUNCTION static std::int64_t slot(std::int64_t begin) { return begin / (most + 1); }
  /// Rows of the buffer for `positions` positions.
  static std::int64_t slots(std::int64_t positions) { return positions / (most + 1); }
};

/// tile = the sum of a segment's values, for columns [column, column + Tile::elements) of a device: the loads
/// of several values are in flight at once, the additions follow the order of the positions.
template <int UnderWay, class Tile, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void sum_values(Compute (&tile)[Tile::elements], const Source& source,
                                            std::int64_t begin, std::int64_t end, const Value* values,
                                            std::int64_t stride, std::int64_t column) {
  const auto load = [&](Compute(&to)[Tile::elements], std::int64_t place) {
    load_tile<Tile>(to, values + source.position(place) * stride + column, Tile::elements);
    if constexpr (requires { Source::adjusts; })
      source.template adjust<Tile>(to, place, column, Tile::elements);
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

/// Device mapping: one thread per (row of the buffer, tile). Of the places that map to one buffer row, only
/// the last one's segment can be long and begin there. Additions follow the order of the positions.
template <class Compute, class Value, class Source>
struct sum_long_segments {
  const std::int64_t* order;
  const std::int64_t* inverse;
  const std::int64_t* segment_begin;
  Source source;
  const Value* values;
  std::int64_t stride;
  Compute* sums;
  std::int64_t width;
  detail::fast_divisor tiles;
  bool packed;  ///< whether a tile is a packet

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (packed)
      sum<packed_tile>(i);
    else
      sum<single_tile>(i);
  }

 private:
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void sum(std::int64_t i) const {
    const std::int64_t slot = tiles.quotient(i);
    const std::int64_t column = (i - slot * tiles.divisor()) * Tile::elements;
    const std::int64_t first = slot * (long_segments::most + 1);
    const std::int64_t segment = inverse[order[first + long_segments::most]];
    if (segment < 0) return;
    const std::int64_t begin = segment_begin[segment];
    const std::int64_t end = segment_begin[segment + 1];
    if (begin < first || !long_segments::has(begin, end)) return;
    Compute total[Tile::elements];
    sum_values<8, Tile>(total, source, begin, end, values, stride, column);
    store_tile<Tile>(total, sums + slot * width + column, Tile::elements);
  }
};

}  // namespace ferry::kernels
