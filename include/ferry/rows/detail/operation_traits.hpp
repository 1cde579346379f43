// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

/// Traits of the operations of apply_rows.
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

/// True if the items of a source are segments of a plan, fewer than its positions.
template <class Source>
inline constexpr bool by_segments = requires(const Source& source) {
  source.unique_count;
};

/// Blocks of a multiprocessor that the registers of apply_rows must allow, see launch.
template <class Compute, class Tile, class Source, class Operation>
consteval unsigned int blocks_of_rows() {
  if constexpr (by_segments<Source> && is_lean<Operation> && Tile::elements <= 4) {
    if (sizeof(Compute) > 4) return Operation::arrays <= 2 ? 10 : 1;
    return Operation::arrays <= 4 ? 12 : Operation::arrays <= 6 ? 10 : 1;
  } else if constexpr (counts_rows<Operation> && Tile::packed && Tile::elements <= 4 &&
                       sizeof(Compute) <= 4) {
    return Operation::blocks_of_counted_rows;
  } else {
    return 1;
  }
}

/// See launch_each. Rows take different times: with fewer rounds some blocks end late.
template <class Source, class Operation>
consteval unsigned int rounds_of_rows(unsigned int blocks_at_once) {
  if (!by_segments<Source> && !catches_up<Operation>) return 0;
  return blocks_at_once > 1 ? 8 : 64;
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

}  // namespace ferry::kernels
