// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Segments of more than `most` values are summed by a kernel of their own, with many loads in flight, for
/// which the other kernels lack registers. Each sum has a row in a buffer. Long segments begin more than
/// `most` places apart, so begin / (most + 1) is a row that no other segment has.
struct long_segments {
  static constexpr std::int64_t most = 64;

  KOKKOS_FUNCTION static bool has(std::int64_t begin, std::int64_t end) { return end - begin > most; }
  KOKKOS_FUNCTION static std::int64_t slot(std::int64_t begin) { return begin / (most + 1); }
  /// Rows of the buffer for `positions` positions.
  static std::int64_t slots(std::int64_t positions) { return positions / (most + 1); }
};

/// Device mapping: one thread per (row of the buffer, tile). Of the places that map to one buffer row, only
/// the last one's segment can be long and begin there. Additions follow the order of the positions.
template <class Compute, class Value, class Source>
struct sum_long_segments {
  static constexpr int under_way = 8;

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
    Compute next[under_way][Tile::elements];
    load<Tile>(total, begin, column);
    std::int64_t k = begin + 1;
    for (; k + under_way <= end; k += under_way) {
      for (int j = 0; j < under_way; ++j) load<Tile>(next[j], k + j, column);
      for (int j = 0; j < under_way; ++j)
        for (int e = 0; e < Tile::elements; ++e) total[e] += next[j][e];
    }
    for (; k < end; ++k) {
      load<Tile>(next[0], k, column);
      for (int e = 0; e < Tile::elements; ++e) total[e] += next[0][e];
    }
    store_tile<Tile>(total, sums + slot * width + column, Tile::elements);
  }

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&tile)[Tile::elements], std::int64_t place,
                                        std::int64_t column) const {
    load_tile<Tile>(tile, values + source.position(place) * stride + column, Tile::elements);
    if constexpr (requires { Source::adjusts; })
      source.template adjust<Tile>(tile, place, column, Tile::elements);
  }
};

}  // namespace ferry::kernels
