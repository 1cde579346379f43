// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

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

}  // namespace ferry::kernels
