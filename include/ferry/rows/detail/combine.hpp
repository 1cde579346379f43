// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/segment_sums.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// tile = the values of one segment, combined by `Duplicates`, for columns [column, column + count). The
/// order of additions is that of sum_pieces on every backend. Adds: the result is added to something.
template <class Tile, class Duplicates, bool Adds = false, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void combine_segment(Compute (&tile)[Tile::elements], const Source& source,
                                                 const row_segment& rows, const Value* values,
                                                 std::int64_t stride, std::int64_t column, int count) {
  constexpr bool last = std::is_same_v<Duplicates, duplicates::last>;
  load_value<Tile, Adds && Duplicates::combines>(tile, source, last ? rows.end - 1 : rows.begin, values,
                                                 stride, column, count);
  if constexpr (Duplicates::combines) {
    const auto load = [&](Compute(&term)[Tile::elements], std::int64_t place) {
      load_value<Tile, true>(term, source, place, values, stride, column, count);
    };
    constexpr int under_way = Tile::host ? 1 : Tile::packed && Tile::elements <= 4 ? 4 : 2;
    const std::int64_t size = rows.end - rows.begin;
    if (!long_sums::has(size)) {
      add_terms<Tile, Tile::packed ? 2 : 1>(tile, rows.begin + 1, rows.end, count, load);
    } else {
      const auto positions = static_cast<std::uint32_t>(size);
      const piece_cut pieces(positions);
      const auto load_piece = [&](Compute(&term)[Tile::elements], std::uint32_t number) {
        if constexpr (Tile::host) {
          const std::int64_t begin = rows.begin + std::int64_t{number} * pieces.size;
          load(term, begin);
          add_terms<Tile, 1>(term, begin + 1, rows.begin + pieces.end(number, positions), count, load);
        } else if constexpr (requires { source.sums; }) {
          const Compute* const sums =
              source.sums.template row<Compute>(long_sums::row_of(rows.begin) + number);
          load_tile<Tile>(term, sums + column, count);
        }
      };
      load_piece(tile, 0);
      add_terms<Tile, under_way>(tile, 1u, pieces.count, count, load_piece);
    }
    if constexpr (std::is_same_v<Duplicates, duplicates::mean>)
      for (int e = 0; e < live<Tile>(count); ++e) tile[e] /= static_cast<Compute>(size);
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
