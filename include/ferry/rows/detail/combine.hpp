// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// True if a device's kernels that update rows sum the pieces of long segments, if the source has work items
/// for that.
template <class Tile, class Duplicates, class Source>
inline constexpr bool sums_pieces = (!Tile::host && Duplicates::combines &&
                                     requires { Source::sums_pieces; });

/// tile = the values of one segment, combined by `Duplicates`, for columns [column, column + count). The
/// order of additions is that of sum_pieces on every backend. Adds: the result is added to something.
template <class Tile, class Duplicates, bool Adds = false, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void combine_segment(Compute (&tile)[Tile::elements], const Source& source,
                                                 const row_segment& rows, const Value* values,
                                                 std::int64_t stride, std::int64_t column, int count) {
  const auto value_of = [&](std::int64_t k) { return values + source.position(k) * stride + column; };
  if constexpr (!Duplicates::combines) {
    const bool last = std::is_same_v<Duplicates, duplicates::last>;
    load_tile<Tile>(tile, value_of(last ? rows.end - 1 : rows.begin), count);
  } else {
    constexpr bool may_be_summed = !Tile::host && requires { source.long_sums; };
    const auto load = [&](std::int64_t k) {
      if constexpr (Adds)
        load_addends<Tile>(tile, value_of(k), count);
      else
        load_tile<Tile>(tile, value_of(k), count);
      if constexpr (requires { Source::adjusts; }) source.template adjust<Tile>(tile, k, column, count);
    };
    load(rows.begin);
    const auto add = [&](std::int64_t k) {
      if constexpr (requires { Source::adjusts; }) {
        Compute next[Tile::elements];
        load_addends<Tile>(next, value_of(k), count);
        source.template adjust<Tile>(next, k, column, count);
        for (int e = 0; e < live<Tile>(count); ++e) tile[e] += next[e];
      } else if constexpr (Tile::partial) {
        const Value* next = value_of(k);
        for (int e = 0; e < live<Tile>(count); ++e) tile[e] += convert<Compute>(next[e]);
      } else {
        Compute next[Tile::elements];
        load_addends<Tile>(next, value_of(k), count);
        for (int e = 0; e < live<Tile>(count); ++e) tile[e] += next[e];
      }
    };
    const auto add_between = [&](std::int64_t first, std::int64_t end) {
      // Segments are rarely longer than one: unrolling would only cost registers.
      KOKKOS_IF_ON_DEVICE((_Pragma("unroll 1") for (std::int64_t k = first; k < end; ++k) add(k);))
      KOKKOS_IF_ON_HOST((for (std::int64_t k = first; k < end; ++k) add(k);))
    };
    if (const std::int64_t size = rows.end - rows.begin; Tile::host && sum_pieces::cuts(size)) {
      const sum_pieces pieces(size);
      Compute total[Tile::elements];
      add_between(rows.begin + 1, rows.begin + pieces.size);
      load_tile<Tile>(total, static_cast<const Compute*>(tile), count);
      for (std::int64_t piece = 1; piece < pieces.count; ++piece) {
        load(rows.begin + piece * pieces.size);
        add_between(rows.begin + piece * pieces.size + 1, rows.begin + pieces.end(piece, size));
        for (int e = 0; e < live<Tile>(count); ++e) total[e] += tile[e];
      }
      load_tile<Tile>(tile, static_cast<const Compute*>(total), count);
    } else if (size > 1) {
      bool summed = false;
      if constexpr (may_be_summed) {
        summed = source.long_sums != nullptr && long_segments::has(rows.begin, rows.end);
        if (summed)
          load_tile<Tile>(tile,
                          static_cast<const Compute*>(source.long_sums) +
                              long_segments::slot(rows.begin) * source.long_stride + column,
                          count);
      }
      if (!summed) add_between(rows.begin + 1, rows.end);
    }
    if constexpr (std::is_same_v<Duplicates, duplicates::mean>)
      for (int e = 0; e < live<Tile>(count); ++e) tile[e] /= static_cast<Compute>(rows.end - rows.begin);
  }
}

/// Host: the values of one segment, combined for columns [column, limit), as a body for detail::registers.
template <class Compute, class Duplicates, class Source, class Value>
struct combine_values {
  const Source& source;
  row_segment rows;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t column;
  std::int64_t limit;
  Compute* combined;

  template <int Bytes>
  [[gnu::always_inline]] void operator()(ferry::detail::register_size<Bytes>) const {
    each_tile<host_tile::elements, 0, Bytes>(
        limit - column, [&]<class Part>(Part, std::int64_t first) __attribute__((always_inline)) {
          Compute value[Part::elements];
          combine_segment<Part, Duplicates>(value, source, rows, values, values_stride, column + first,
                                            Part::elements);
          store_tile<Part>(value, combined + first, Part::elements);
        });
  }
};

}  // namespace ferry::kernels
