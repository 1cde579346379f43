#pragma once

#include <ferry/kernels/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// What is done with the combined value of a row. An operation sees one tile: item (of the source), row (of
/// the table), column, the tile and its live elements.
namespace ferry::kernels {

/// table[row] = value
template <class T>
struct replace_row {
  T* table;
  std::int64_t stride;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void apply(std::int64_t, std::int64_t row, std::int64_t column,
                                         Compute (&value)[Tile::elements], int count) const {
    store_tile<Tile>(value, table + row * stride + column, count);
  }
};

/// table[row] += value, added in the accumulation type and rounded once.
template <class T>
struct add_row {
  T* table;
  std::int64_t stride;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void apply(std::int64_t, std::int64_t row, std::int64_t column,
                                         Compute (&value)[Tile::elements], int count) const {
    T* at = table + row * stride + column;
    Compute sum[Tile::elements];
    load_tile<Tile>(sum, at, count);
    for (int e = 0; e < live<Tile>(count); ++e) sum[e] += value[e];
    store_tile<Tile>(sum, at, count);
  }
};

/// buffer[item] = value: the combined rows, packed for their way through the ring.
template <class T>
struct emit_row {
  T* buffer;
  std::int64_t stride;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void apply(std::int64_t item, std::int64_t, std::int64_t column,
                                         Compute (&value)[Tile::elements], int count) const {
    store_tile<Tile>(value, buffer + item * stride + column, count);
  }
};

}  // namespace ferry::kernels
