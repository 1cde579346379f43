// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

/// Facts about tables and sources whose rows are pooled, and about a bag.
namespace ferry::kernels {

/// True if a source may have no row for a position.
template <class Source>
inline constexpr bool may_miss = true;
template <class Index>
inline constexpr bool may_miss<index_rows<Index, bounds::unchecked>> = false;
template <class Index>
inline constexpr bool may_miss<index_rows<Index, bounds::clamp>> = false;

/// True if a bag with such a position always keeps its contents, so that its sum does not matter.
template <class Source>
inline constexpr bool always_strict = false;
template <class Index, class Bounds>
inline constexpr bool always_strict<index_rows<Index, Bounds>> = Bounds::reports;

/// True if row_or_first of a source serves positions as row does. False for sources that inherit it and place
/// rows elsewhere.
template <class Source>
inline constexpr bool returns_first = false;
template <class Index, class Bounds>
inline constexpr bool returns_first<index_rows<Index, Bounds>> =
    std::is_same_v<Bounds, bounds::check> || std::is_same_v<Bounds, bounds::skip>;

/// True if the address of a column leads to those of its elements in all rows, see row_parts.
template <class Table>
inline constexpr bool has_parts = requires(const Table& table) {
  table.template parts_from<std::int64_t>(0);
};

/// True if rows of a table have load_codes, whose coded_tile a device keeps until it adds the row.
template <class Table>
inline constexpr bool has_coded_tiles = requires {
  requires Table::has_coded_tiles;
};

/// A tile of a row that is added next: its elements, or if Coded its codes.
template <class Table, class Compute, class Tile, bool Coded>
struct next_tile {
  Compute value[Tile::elements];
};
template <class Table, class Compute, class Tile>
struct next_tile<Table, Compute, Tile, true> {
  typename Table::template coded_tile<Tile::elements> codes;
};

/// Rows of a table that has no parts_from, from a column on.
template <class Table>
struct any_parts {
  const Table& table;
  std::int64_t width, column;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&value)[Tile::elements], std::int64_t row, int count) const {
    table.row(row, width).template load<Tile>(value, column, count);
  }
  template <class Tile>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION auto load_codes(std::int64_t row) const {
    return table.row(row, width).template load_codes<Tile>(column);
  }
};
/// Loads a tile of a row, for a sum or if Selects for a comparison.
template <class Tile, bool Selects, class Compute, class Parts>
KOKKOS_FORCEINLINE_FUNCTION void load_part(Compute (&value)[Tile::elements], const Parts& parts,
                                           std::int64_t row, int count) {
  if constexpr (requires { parts.template load<Tile>(value, row, count); })
    parts.template load<Tile>(value, row, count);
  else if constexpr (Selects)
    load_tile<Tile>(value, parts[row], count);
  else
    load_addends<Tile>(value, parts[row], count);
}

/// True if a source returns rows of a table whose number it knows.
template <class Source>
inline constexpr bool knows_rows = false;
template <class Index, class Bounds>
inline constexpr bool knows_rows<index_rows<Index, Bounds>> = true;

}  // namespace ferry::kernels
