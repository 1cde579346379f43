// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The number of sums over a row that an update needs, at least 1 so that arrays have an element.
template <class Update>
inline constexpr int measures_of = 1;
template <class Update>
  requires requires { Update::sums; }
inline constexpr int measures_of<Update> = Update::sums;

/// Gradient, weights and state of the elements of a tile. Separate arrays, so that a host's compiler loads
/// and stores vectors of them.
template <class Compute, class Tile, int Fields>
struct row_tile {
  static constexpr int field_room = Fields == 0 ? 1 : Fields;

  Compute gradient[Tile::elements];
  Compute weight[Tile::elements];
  Compute field[field_room][Tile::elements];

  struct state_of_one {
    Compute field[field_room];
  };
  KOKKOS_FORCEINLINE_FUNCTION state_of_one state(int e) const {
    state_of_one element;
    element.field[0] = Compute(0);  // unused without fields
    for (int f = 0; f < Fields; ++f) element.field[f] = field[f][e];
    return element;
  }
};

/// The tiles of a row during a step by a kernel that has advance<From, To>(tile, row, column, count).
///   enter<From, To>(kernel, row, walk)      brings them from one phase to a later one
///   at<To>(kernel, row, column, count)      the tile of a column, in a phase that it has entered
/// @{
/// A lane's tile of a row that needs no second one: it stays in registers and enters each phase once.
template <class Tile>
struct kept_tile {
  Tile current;

  template <auto From, auto To, class Kernel, class Row, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void enter(const Kernel& kernel, const Row& row, const Walk& walk) {
    walk.for_each_tile([&](std::int64_t column, int count) {
      kernel.template advance<From, To>(current, row, column, count);
    });
  }
  template <auto, class Kernel, class Row>
  KOKKOS_FORCEINLINE_FUNCTION const Tile& at(const Kernel&, const Row&, std::int64_t, int) const {
    return current;
  }
};
/// The tiles of a longer row: each walk computes them from memory.
template <class Tile, auto Unread>
struct recomputed_tiles {
  template <auto, auto, class Kernel, class Row, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void enter(const Kernel&, const Row&, const Walk&) {}
  template <auto To, class Kernel, class Row>
  KOKKOS_FORCEINLINE_FUNCTION Tile at(const Kernel& kernel, const Row& row, std::int64_t column,
                                      int count) const {
    Tile computed;
    kernel.template advance<Unread, To>(computed, row, column, count);
    return computed;
  }
};
/// @}

}  // namespace ferry::kernels
