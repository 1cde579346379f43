#pragma once

#include <ferry/index/duplicates.hpp>
#include <ferry/kernels/row_source.hpp>
#include <ferry/kernels/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// tile = the value of a segment that stands alone or comes first, columns [column, column + count).
template <class Tile, class Duplicates, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void first_of_segment(Compute (&tile)[Tile::elements], const Source& source,
                                                  const row_segment& rows, const Value* values,
                                                  std::int64_t stride, std::int64_t column, int count) {
  const bool last = std::is_same_v<Duplicates, duplicates::last>;
  load_tile<Tile>(tile, values + source.position(last ? rows.end - 1 : rows.begin) * stride + column, count);
}

/// What `Duplicates` makes of the first value and of the others. Sums run in the order of the positions, one after the
/// other, whatever the backend.
template <class Tile, class Duplicates, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void rest_of_segment(Compute (&tile)[Tile::elements], const Source& source,
                                                 const row_segment& rows, const Value* values,
                                                 std::int64_t stride, std::int64_t column, int count) {
  if constexpr (Duplicates::combines) {
    const auto value_of = [&](std::int64_t k) { return values + source.position(k) * stride + column; };
    std::int64_t k = rows.begin + 1;
    if constexpr (!Tile::partial) {
      // Loads of a long segment are issued four at a time; the additions keep their order.
      for (; k + 4 <= rows.end; k += 4) {
        Compute next[4][Tile::elements];
        for (int j = 0; j < 4; ++j) load_tile<Tile>(next[j], value_of(k + j), count);
        for (int j = 0; j < 4; ++j)
          for (int e = 0; e < Tile::elements; ++e) tile[e] += next[j][e];
      }
    }
    for (; k < rows.end; ++k) {
      Compute next[Tile::elements];
      load_tile<Tile>(next, value_of(k), count);
      for (int e = 0; e < live<Tile>(count); ++e) tile[e] += next[e];
    }
    if constexpr (std::is_same_v<Duplicates, duplicates::mean>)
      for (int e = 0; e < live<Tile>(count); ++e) tile[e] /= static_cast<Compute>(rows.end - rows.begin);
  }
}

/// tile = what `Duplicates` makes of the values of one segment, columns [column, column + count).
template <class Tile, class Duplicates, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void combine_segment(Compute (&tile)[Tile::elements], const Source& source,
                                                 const row_segment& rows, const Value* values,
                                                 std::int64_t stride, std::int64_t column, int count) {
  first_of_segment<Tile, Duplicates>(tile, source, rows, values, stride, column, count);
  rest_of_segment<Tile, Duplicates>(tile, source, rows, values, stride, column, count);
}

}  // namespace ferry::kernels
