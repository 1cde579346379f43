// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

/// The part of apply_rows on a device that sums the pieces of long segments and updates their rows.
namespace ferry::kernels {

/// True if an operation of apply_rows has so few inputs that its kernel needs at most 48 registers.
template <class Operation>
inline constexpr bool is_lean = requires {
  requires Operation::is_lean;
};

/// Blocks of a multiprocessor that the registers of apply_rows must allow, see launch: those of a kernel
/// without the sums of pieces, which would take more. Kernels that already have as many state none.
template <class Compute, class Tile, class Duplicates, class Source, class Operation>
consteval unsigned int blocks_of_rows() {
  if constexpr (sums_pieces<Tile, Duplicates, Source> && is_lean<Operation> && Tile::elements <= 4) {
    if (sizeof(Compute) > 4) return Operation::arrays <= 2 ? 10 : 1;
    return Operation::arrays <= 4 ? 12 : Operation::arrays <= 6 ? 10 : 1;
  } else {
    return 1;
  }
}

/// The first column of the tiles of an item's row.
template <class Tile, class Operation>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t first_column([[maybe_unused]] const Operation& operation,
                                                      [[maybe_unused]] std::int64_t item,
                                                      [[maybe_unused]] std::int64_t row) {
  if constexpr (Tile::masked)
    return masked_column<Tile>(0, operation.target(item, row));
  else
    return 0;
}

/// True if the threads of its pieces update the row.
template <class Tile, class Duplicates, class Source>
KOKKOS_FORCEINLINE_FUNCTION bool is_in_pieces([[maybe_unused]] const Source& source,
                                              [[maybe_unused]] const row_segment& rows) {
  if constexpr (sums_pieces<Tile, Duplicates, Source>)
    return source.pieces.items != 0 && long_segments::has(rows.begin, rows.end);
  else
    return false;
}

/// Sums the piece of work item i. The thread that sums the last one of a row updates it.
template <class Compute, class Tile, class Duplicates, class Kernel>
KOKKOS_FORCEINLINE_FUNCTION void update_piece(const Kernel& kernel, std::int64_t i) {
  using source_type = std::remove_cvref_t<decltype(kernel.source)>;
  using value_type = std::remove_cvref_t<decltype(*kernel.values)>;
  constexpr std::uint32_t under_way = Kernel::blocks_at_once == 12 ? 12 : 16;
  piece_sums<Compute, Tile, source_type, value_type, true, under_way>{
      kernel.source, kernel.values, kernel.values_stride, kernel.width, kernel.tiles}
      .sum(
          i,
          [&](std::uint32_t segment) {
            return first_column<Tile>(kernel.operation, segment, kernel.source.unique_rows[segment]);
          },
          [&](const long_piece& piece, std::int64_t column, Compute(&value)[Tile::elements], int count) {
            if constexpr (std::is_same_v<Duplicates, duplicates::mean>)
              for (int e = 0; e < Tile::elements; ++e)
                value[e] /= static_cast<Compute>(piece.end - piece.begin);
            const std::int64_t row = kernel.source.unique_rows[piece.segment];
            typename decltype(Kernel::operation)::template held<Tile, Compute> inputs;
            kernel.operation.load(inputs, row, column, count);
            kernel.operation.finish(inputs, piece.segment, row, column, value, count);
          });
}

}  // namespace ferry::kernels
