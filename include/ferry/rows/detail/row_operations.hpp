// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/prefetch.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Operations on a row and its combined value. An operation sees one tile: item (of the source), row (of the
/// table), column, the tile and its live elements. `load` reads the other inputs of `finish`, so that these
/// loads are issued before values are summed. `prefetch<Ahead>` prefetches a later row, by look_ahead on a
/// host. On a host an operation with `by_vectors` gets rows of one value in tiles of one vector. `arrays` is
/// the number of rows that it reads or writes. `target(item, row)` is the row that it writes, for masked
/// tiles. One with `adds` adds the value to something.
namespace ferry::kernels {

/// An operation that reads nothing and never refuses.
struct plain_operation {
  static constexpr bool by_vectors = true;
  static constexpr bool is_lean = true;
  static constexpr int arrays = 1;

  template <class Tile, class Compute>
  struct held {};

  KOKKOS_FORCEINLINE_FUNCTION static bool is_refused() { return false; }
  template <class Held>
  KOKKOS_FORCEINLINE_FUNCTION static void load(Held&, std::int64_t, std::int64_t, int) {}
  template <class Ahead = look_ahead>
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch(std::int64_t, std::int64_t) {}
};

/// table[row] = value
template <class T>
struct replace_row : plain_operation {
  T* table;
  std::int64_t stride;

  KOKKOS_FUNCTION replace_row(T* data, std::int64_t step) : table(data), stride(step) {}

  template <class Ahead = look_ahead>
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t row, std::int64_t width) const {
    Ahead::prefetch(table + row * stride, width * static_cast<std::int64_t>(sizeof(T)));
  }

  /// The row that is written.
  KOKKOS_FORCEINLINE_FUNCTION T* target(std::int64_t, std::int64_t row) const { return table + row * stride; }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(const held<Tile, Compute>&, std::int64_t, std::int64_t row,
                                          std::int64_t column, const Compute (&value)[Tile::elements],
                                          int count) const {
    store_tile<Tile>(value, table + row * stride + column, count);
  }
};

/// table[row] += value, added in the accumulation type and rounded once.
template <class T>
struct add_row {
  static constexpr bool adds = true;
  static constexpr bool by_vectors = true;
  static constexpr bool is_lean = true;
  static constexpr int arrays = 2;

  T* table;
  std::int64_t stride;

  template <class Tile, class Compute>
  struct held {
    Compute sum[Tile::elements];
  };

  KOKKOS_FORCEINLINE_FUNCTION static bool is_refused() { return false; }
  template <class Ahead = look_ahead>
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t row, std::int64_t width) const {
    Ahead::prefetch(table + row * stride, width * static_cast<std::int64_t>(sizeof(T)));
  }
  /// The row that is written.
  KOKKOS_FORCEINLINE_FUNCTION T* target(std::int64_t, std::int64_t row) const { return table + row * stride; }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(held<Tile, Compute>& inputs, std::int64_t row, std::int64_t column,
                                        int count) const {
    load_addends<Tile>(inputs.sum, table + row * stride + column, count);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(held<Tile, Compute>& inputs, std::int64_t, std::int64_t row,
                                          std::int64_t column, const Compute (&value)[Tile::elements],
                                          int count) const {
    for (int e = 0; e < live<Tile>(count); ++e) inputs.sum[e] += value[e];
    store_results<Tile>(inputs.sum, table + row * stride + column, count);
  }
};

/// buffer[item] = value: the combined rows, packed for the ring.
template <class T>
struct emit_row : plain_operation {
  T* buffer;
  std::int64_t stride;

  KOKKOS_FUNCTION emit_row(T* data, std::int64_t step) : buffer(data), stride(step) {}

  /// The row that is written.
  KOKKOS_FORCEINLINE_FUNCTION T* target(std::int64_t item, std::int64_t) const {
    return buffer + item * stride;
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(const held<Tile, Compute>&, std::int64_t item, std::int64_t,
                                          std::int64_t column, const Compute (&value)[Tile::elements],
                                          int count) const {
    store_tile<Tile>(value, buffer + item * stride + column, count);
  }
};

}  // namespace ferry::kernels
