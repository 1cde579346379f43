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

/// True if an operation of apply_rows adds the value to something.
template <class Operation>
inline constexpr bool adds_value = requires {
  requires Operation::adds;
};

/// True if an operation of apply_rows gives rows steps of their own.
template <class Operation>
inline constexpr bool counts_rows = requires {
  requires Operation::counts_rows;
};

/// True if an operation of apply_rows gives rows the steps that they missed.
template <class Operation>
inline constexpr bool catches_up = requires {
  requires Operation::catches_up;
};

/// The most threads of a block of apply_rows.
template <class Operation>
inline constexpr unsigned int threads_of_rows = 128;
template <class Operation>
  requires(catches_up<Operation>)
inline constexpr unsigned int threads_of_rows<Operation> = Operation::most_threads;

/// Blocks of a multiprocessor that the registers of apply_rows must allow, see launch: those of a kernel
/// without the sums of pieces, which would take more, or those that the operation states. Kernels that
/// already have as many state none.
template <class Compute, class Tile, class Duplicates, class Source, class Operation>
consteval unsigned int blocks_of_rows() {
  if constexpr (sums_pieces<Tile, Duplicates, Source> && is_lean<Operation> && Tile::elements <= 4) {
    if (sizeof(Compute) > 4) return Operation::arrays <= 2 ? 10 : 1;
    return Operation::arrays <= 4 ? 12 : Operation::arrays <= 6 ? 10 : 1;
  } else if constexpr (counts_rows<Operation> && Tile::packed && Tile::elements <= 4 &&
                       sizeof(Compute) <= 4) {
    return Operation::blocks_of_counted_rows;
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

/// True if work item i has a piece of a long segment, if that is one, to sum.
template <class Tile, class Duplicates, class Source>
KOKKOS_FORCEINLINE_FUNCTION bool is_piece([[maybe_unused]] const Source& source,
                                          [[maybe_unused]] std::int64_t i) {
  if constexpr (sums_pieces<Tile, Duplicates, Source>)
    return source.pieces.has(i);
  else
    return false;
}

/// Updates a tile of the row of an item by the sum of its values, as apply_rows does.
template <class Kernel>
KOKKOS_FORCEINLINE_FUNCTION void update_by_sum(const Kernel& kernel, std::int64_t item,
                                               const row_segment& rows, std::int64_t column,
                                               typename Kernel::compute (&sum)[Kernel::tile::elements],
                                               int count) {
  using tile = typename Kernel::tile;
  using compute = typename Kernel::compute;
  if constexpr (std::is_same_v<typename Kernel::duplicates_type, duplicates::mean>)
    for (int e = 0; e < tile::elements; ++e) sum[e] /= static_cast<compute>(rows.end - rows.begin);
  typename Kernel::operation_type::template held<tile, compute> inputs;
  kernel.operation.load(inputs, rows.row, column, count);
  kernel.operation.finish(inputs, item, rows.row, column, sum, count);
}

/// Sums the piece of work item i. The thread that sums the last one of a row updates it.
template <class Kernel>
KOKKOS_FORCEINLINE_FUNCTION void update_piece([[maybe_unused]] const Kernel& kernel,
                                              [[maybe_unused]] std::int64_t i) {
  using tile = typename Kernel::tile;
  using compute = typename Kernel::compute;
  using source_type = std::remove_cvref_t<decltype(kernel.source)>;
  using value_type = std::remove_cvref_t<decltype(*kernel.values)>;
  if constexpr (sums_pieces<tile, typename Kernel::duplicates_type, source_type>) {
    constexpr std::uint32_t under_way = Kernel::blocks_at_once == 12 ? 12 : 16;
    const piece_sums<compute, tile, source_type, value_type, true, under_way> pieces{
        kernel.source, kernel.values, kernel.values_stride, kernel.width, kernel.tiles};
    pieces.sum(
        i,
        [&](std::uint32_t segment) {
          return first_column<tile>(kernel.operation, segment, kernel.source.unique_rows[segment]);
        },
        [&](const long_piece& piece, std::int64_t column, compute(&sum)[tile::elements], int count) {
          const row_segment rows{kernel.source.unique_rows[piece.segment], piece.begin, piece.end};
          update_by_sum(kernel, piece.segment, rows, column, sum, count);
        });
  }
}

}  // namespace ferry::kernels
