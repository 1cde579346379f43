// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/quantized/detail/decode_rows.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_weights.hpp>
#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
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

/// True if row_or_first of a source serves positions as row does. False for sources that inherit it and find
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

/// The rows of an array from a column on. Rows and the bytes of one are counted in `Number`.
template <class T, class Number>
struct row_parts {
  const char* first;
  Number row_bytes;

  KOKKOS_FORCEINLINE_FUNCTION const T* operator[](std::int64_t row) const {
    using wide = std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>;
    return reinterpret_cast<const T*>(first + static_cast<wide>(static_cast<Number>(row)) * row_bytes);
  }
};

/// The records of 8-bit rows from a column on, counted in the same way.
template <class Number>
struct record_parts {
  const std::byte* first;
  Number record_bytes;
  Number tail;  ///< from the column to the scale

  template <class Tile>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION rowwise_int8_tile<Tile::elements> load_codes(
      std::int64_t row) const {
    const std::byte* const codes =
        row_parts<std::byte, Number>{reinterpret_cast<const char*>(first), record_bytes}[row];
    return rowwise_int8_tile<Tile::elements>::load(codes, codes + tail);
  }
};

/// A table whose rows are pooled: numbers, or records of 8-bit rows.
template <class T>
struct pooled_table {
  nearest_weights<const T> rows;

  static constexpr std::int64_t element_bytes = sizeof(T);

  KOKKOS_FUNCTION static pooled_table of(const T* data, std::int64_t stride) { return {{data, stride}}; }

  KOKKOS_FORCEINLINE_FUNCTION auto row(std::int64_t index, std::int64_t width) const {
    return rows.row(index, width);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_stride_bytes() const {
    return rows.stride * static_cast<std::int64_t>(sizeof(T));
  }
  template <class Number>
  KOKKOS_FORCEINLINE_FUNCTION row_parts<T, Number> parts_from(std::int64_t column) const {
    return {reinterpret_cast<const char*>(rows.data + column), static_cast<Number>(row_stride_bytes())};
  }
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t index, std::int64_t row_bytes) const {
    look_ahead::prefetch(rows.data + index * rows.stride, row_bytes);
  }
};
template <>
struct pooled_table<std::byte> {
  const std::byte* records;
  std::int64_t record_bytes;

  struct record_row : coded_row<quantization::rowwise_int8> {
    /// The codes of a tile as they are, for rowwise_int8_tile::decode.
    template <class Tile>
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION rowwise_int8_tile<Tile::elements> load_codes(
        std::int64_t column) const {
      return rowwise_int8_tile<Tile::elements>::load(codes + column, scales);
    }
  };

  static constexpr std::int64_t element_bytes = 1;
  static constexpr bool has_coded_tiles = true;
  template <int Elements>
  using coded_tile = rowwise_int8_tile<Elements>;

  KOKKOS_FUNCTION static pooled_table of(const std::byte* data, std::int64_t stride) {
    return {data, stride};
  }

  KOKKOS_FORCEINLINE_FUNCTION record_row row(std::int64_t index, std::int64_t width) const {
    const std::byte* const codes = records + index * record_bytes;
    return {{codes, codes + width, 1.0f}};
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_stride_bytes() const { return record_bytes; }
  template <class Number>
  KOKKOS_FORCEINLINE_FUNCTION record_parts<Number> codes_from(std::int64_t column, std::int64_t width) const {
    return {records + column, static_cast<Number>(record_bytes), static_cast<Number>(width - column)};
  }
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t index, std::int64_t row_bytes) const {
    look_ahead::prefetch(records + index * record_bytes, row_bytes);
  }
};

/// Rows of codes and scales: a kind of coded_blocks.
template <class Memory>
struct pooled_codes {
  using quantization = typename Memory::quantization;

  Memory rows;

  static constexpr std::int64_t element_bytes = 1;
  static constexpr bool keeps_scales = true;

  KOKKOS_FORCEINLINE_FUNCTION coded_row<quantization> row(std::int64_t index, std::int64_t) const {
    return {rows.codes_of(index), rows.scales_of(index), rows.tensor_scale};
  }
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t index, std::int64_t) const {
    look_ahead::prefetch(rows.codes_of(index), rows.row_bytes);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Rows as kernels pool them: of quantized rows the codes.
template <class Rows>
const Rows& pooled_rows(const Rows& rows) {
  return rows;
}
template <CodedRows Rows>
const auto& pooled_rows(const Rows& rows) {
  return rows.codes;
}

/// The table and the source that kernels pool.
template <class Table, class Source>
struct pooling_operands {
  Table table;
  Source source;
};
template <class Table, class Source>
pooling_operands(Table, Source) -> pooling_operands<Table, Source>;

template <class Rows, class Source>
auto pooling_operands_of(const Rows& rows, const Source& source) {
  const auto& pooled = pooled_rows(rows);
  const auto units = read_in_units(sizeof(typename Rows::value_type), pooled, source);
  using element = std::remove_cv_t<std::remove_pointer_t<decltype(units.data)>>;
  return pooling_operands{kernels::pooled_table<element>::of(units.data, units.stride), units.source};
}
template <CodedRows Rows, class Source>
auto pooling_operands_of(const Rows& rows, const Source& source) {
  const auto memory = rows.for_kernels();
  using table = kernels::pooled_codes<std::remove_const_t<decltype(memory)>>;
  if constexpr (table::quantization::in_records)
    return pooling_operands_of(rows.codes, source);
  else if constexpr (requires { rows.placed(source); })
    return pooling_operands{table{memory}, rows.placed(source)};
  else
    return pooling_operands{table{memory}, source};
}

}  // namespace ferry::detail
