// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/operation_traits.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <cstring>

namespace ferry::kernels {

/// How a kernel's threads load a unit of a row before they may write: of other kernels nothing. For a kernel,
/// and units of the rows of several items:
///
///   at_once                 the number of items
///   held                    what a thread keeps of an item; `row` is its row, -1 if it has none
///   row_of(kernel, item)    the row of an item
///   load(kernel, held, item, unit)      loads what lies where the item says
///   load_row(kernel, held, item, unit)  loads what lies in its row
///   write(kernel, held, item, unit)     does what is left
template <class Kernel>
struct rows_ahead {};

template <class Kernel>
inline constexpr bool loads_ahead = requires {
  rows_ahead<Kernel>::at_once;
};

/// Row p of a batch moves to the row of position p.
template <class Unit, class Index, class Bounds>
struct rows_ahead<gather_rows<Unit, index_destinations<Index, Bounds>>> {
  using kernel_type = gather_rows<Unit, index_destinations<Index, Bounds>>;
  static constexpr int at_once = 4;

  struct held {
    opaque16 bits;
    std::int64_t row;
  };

  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t row_of(const kernel_type& kernel, std::int64_t item) {
    return kernel.source.position(item);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load(const kernel_type& kernel, held& part, std::int64_t item,
                                               std::int64_t unit) {
    const std::int64_t place = item * kernel.table_stride + unit;
    if (kernel.wide) {
      part.bits = static_cast<const opaque16*>(kernel.table)[place];
    } else {
      const Unit narrow = static_cast<const Unit*>(kernel.table)[place];
      std::memcpy(&part.bits, &narrow, sizeof narrow);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load_row(const kernel_type&, held&, std::int64_t, std::int64_t) {}
  KOKKOS_FORCEINLINE_FUNCTION static void write(const kernel_type& kernel, const held& part, std::int64_t,
                                                std::int64_t unit) {
    if (part.row < 0) return;
    const std::int64_t place = part.row * kernel.out_stride + unit;
    if (kernel.wide) {
      static_cast<opaque16*>(kernel.out)[place] = part.bits;
    } else {
      Unit narrow;
      std::memcpy(&narrow, &part.bits, sizeof narrow);
      static_cast<Unit*>(kernel.out)[place] = narrow;
    }
  }
};

/// Items are positions, with one value each.
template <class Compute, class Tile, class Duplicates, class Index, class Bounds, class Value,
          class Operation>
struct rows_ahead<apply_rows<Compute, Tile, Duplicates, index_rows<Index, Bounds>, Value, Operation>> {
  using kernel_type = apply_rows<Compute, Tile, Duplicates, index_rows<Index, Bounds>, Value, Operation>;
  static constexpr int at_once = Operation::arrays <= 2 ? 2 : 1;

  struct held {
    std::int64_t row;
    Compute value[Tile::elements];
    typename Operation::template held<Tile, Compute> inputs;
  };

  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t row_of(const kernel_type& kernel, std::int64_t item) {
    return kernel.source.row(item, false);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load(const kernel_type& kernel, held& part, std::int64_t item,
                                               std::int64_t unit) {
    if constexpr (!Tile::masked) load_value(kernel, part, item, unit * Tile::elements, Tile::elements);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load_row(const kernel_type& kernel, held& part, std::int64_t item,
                                                   std::int64_t unit) {
    if (part.row < 0) return;
    const std::int64_t column = column_of(kernel, part, item, unit);
    const int count = count_of<Tile>(column, kernel.width);
    if (count == 0) {
      part.row = -1;
      return;
    }
    if constexpr (Tile::masked) load_value(kernel, part, item, column, count);
    kernel.operation.load(part.inputs, part.row, column, count);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void write(const kernel_type& kernel, held& part, std::int64_t item,
                                                std::int64_t unit) {
    if (part.row < 0 || kernel.operation.is_refused()) return;
    const std::int64_t column = column_of(kernel, part, item, unit);
    kernel.operation.finish(part.inputs, item, part.row, column, part.value,
                            count_of<Tile>(column, kernel.width));
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t column_of(const kernel_type& kernel, const held& part,
                                                            std::int64_t item, std::int64_t unit) {
    return first_column<Tile>(kernel.operation, item, part.row) + unit * Tile::elements;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load_value(const kernel_type& kernel, held& part, std::int64_t item,
                                                     std::int64_t column, int count) {
    load_tile<Tile>(part.value, kernel.values + item * kernel.values_stride + column, count);
  }
};

}  // namespace ferry::kernels
