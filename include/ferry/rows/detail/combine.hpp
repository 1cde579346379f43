// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// True if kernels that update rows may sum long segments.
template <class Tile, class Duplicates, class Source>
inline constexpr bool may_sum_here = (!Tile::host && Duplicates::combines &&
                                      requires(const Source& source) { source.long_sums; });

/// True if such a kernel sums this one, by sum_segment.
template <class Tile, class Duplicates, class Source>
KOKKOS_FORCEINLINE_FUNCTION bool sums_here([[maybe_unused]] const Source& source,
                                           [[maybe_unused]] const row_segment& rows) {
  if constexpr (may_sum_here<Tile, Duplicates, Source>)
    return source.long_sums == nullptr && long_segments::has(rows.begin, rows.end);
  else
    return false;
}

/// combine_segment for a segment of many values. Two loads are in flight: more would cost the kernel
/// registers, and so each row some occupancy (adam on packed floats: 44 registers with two, 48 with four, 62
/// with eight).
template <class Tile, class Duplicates, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void sum_segment(
    [[maybe_unused]] Compute (&tile)[Tile::elements], [[maybe_unused]] const Source& source,
    [[maybe_unused]] const row_segment& rows, [[maybe_unused]] const Value* values,
    [[maybe_unused]] std::int64_t stride, [[maybe_unused]] std::int64_t column, [[maybe_unused]] int count) {
  if constexpr (may_sum_here<Tile, Duplicates, Source>) {
    sum_values<2, Tile>(tile, source, rows.begin, rows.end, values, stride, column, count);
    if constexpr (std::is_same_v<Duplicates, duplicates::mean>)
      for (int e = 0; e < Tile::elements; ++e) tile[e] /= static_cast<Compute>(rows.end - rows.begin);
  }
}

/// tile = the values of one segment, combined by `Duplicates`, for columns [column, column + count). Sums
/// follow the order of the positions on every backend.
template <class Tile, class Duplicates, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void combine_segment(Compute (&tile)[Tile::elements], const Source& source,
                                                 const row_segment& rows, const Value* values,
                                                 std::int64_t stride, std::int64_t column, int count) {
  const auto value_of = [&](std::int64_t k) { return values + source.position(k) * stride + column; };
  if constexpr (!Duplicates::combines) {
    const bool last = std::is_same_v<Duplicates, duplicates::last>;
    load_tile<Tile>(tile, value_of(last ? rows.end - 1 : rows.begin), count);
  } else {
    bool summed = false;
    if constexpr (!Tile::host && requires { source.long_sums; })
      summed = source.long_sums != nullptr && long_segments::has(rows.begin, rows.end);
    if constexpr (!Tile::host && requires { source.long_sums; }) {
      if (summed)
        load_tile<Tile>(tile,
                        static_cast<const Compute*>(source.long_sums) +
                            long_segments::slot(rows.begin) * source.long_stride + column,
                        count);
    }
    if (!summed) {
      load_tile<Tile>(tile, value_of(rows.begin), count);
      if constexpr (requires { Source::adjusts; })
        source.template adjust<Tile>(tile, rows.begin, column, count);
    }
    const std::int64_t end = summed ? rows.begin : rows.end;
    const auto add = [&](std::int64_t k) {
      if constexpr (requires { Source::adjusts; }) {
        Compute next[Tile::elements];
        load_tile<Tile>(next, value_of(k), count);
        source.template adjust<Tile>(next, k, column, count);
        for (int e = 0; e < live<Tile>(count); ++e) tile[e] += next[e];
      } else if constexpr (Tile::partial) {
        const Value* next = value_of(k);
        for (int e = 0; e < live<Tile>(count); ++e) tile[e] += convert<Compute>(next[e]);
      } else {
        Compute next[Tile::elements];
        load_tile<Tile>(next, value_of(k), count);
        for (int e = 0; e < live<Tile>(count); ++e) tile[e] += next[e];
      }
    };
    // Segments are rarely longer than one: unrolling would only cost registers.
    KOKKOS_IF_ON_DEVICE((_Pragma("unroll 1") for (std::int64_t k = rows.begin + 1; k < end; ++k) add(k);))
    KOKKOS_IF_ON_HOST((for (std::int64_t k = rows.begin + 1; k < end; ++k) add(k);))
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
