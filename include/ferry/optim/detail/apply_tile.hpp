// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/rule.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <utility>

namespace ferry::kernels {

/// Lanes in which a tile's elements are updated on a host: 0 if the update takes one number at a time.
template <class Tile, class Update, class Compute>
consteval int lanes_in_tile() {
  if constexpr (Tile::host && requires { requires Update::by_lanes; }) {
    int lanes = ferry::detail::most_lanes<Compute, Tile::registers>;
    while (lanes > Tile::elements) lanes /= 2;
    return lanes;
  } else {
    return 0;
  }
}

/// Updates elements [at, at + Lanes) of a tile. Without fields the loops are left out: at -O0 GCC would keep
/// them, and warn of what they would read.
template <int Lanes, int Fields, class Update, class Compute, int Room, int Elements>
KOKKOS_FORCEINLINE_FUNCTION void apply_lanes(const Update& now, Compute (&weight)[Elements],
                                             const Compute (&gradient)[Elements],
                                             Compute (&field)[Room][Elements], int first) {
  using number = typename ferry::detail::lanes_of<Compute>::template type<Lanes>;
  number fields[Room];
  fields[0] = number(Compute(0));  // unused without fields: a rule without fields still takes an array
  if constexpr (Fields != 0)
    for (int f = 0; f < Fields; ++f) fields[f] = number::load(field[f] + first);
  number updated = number::load(weight + first);
  now.apply(updated, number::load(gradient + first), fields);
  updated.store(weight + first);
  if constexpr (Fields != 0)
    for (int f = 0; f < Fields; ++f) fields[f].store(field[f] + first);
}

template <int Lanes, int Fields, class Update, class Compute, int Room, int Elements, int... Part>
KOKKOS_FORCEINLINE_FUNCTION void apply_parts(const Update& now, Compute (&weight)[Elements],
                                             const Compute (&gradient)[Elements],
                                             Compute (&field)[Room][Elements],
                                             std::integer_sequence<int, Part...>) {
  (apply_lanes<Lanes, Fields>(now, weight, gradient, field, Part * Lanes), ...);
}

/// Updates the live elements of a tile: several at once if the update takes them so. A whole tile in lanes
/// has no loop: at -O2 GCC would not unroll it, and so keep the tile in memory.
template <class Tile, int Fields, class Update, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void apply_tile(const Update& now, Compute (&weight)[Tile::elements],
                                            const Compute (&gradient)[Tile::elements],
                                            Compute (&field)[Room][Tile::elements], int count) {
  constexpr int lanes = lanes_in_tile<Tile, Update, Compute>();
  if constexpr (lanes != 0 && !Tile::partial) {
    apply_parts<lanes, Fields>(now, weight, gradient, field,
                               std::make_integer_sequence<int, Tile::elements / lanes>());
  } else if constexpr (lanes != 0) {
    int e = 0;
    for (; e + lanes <= count; e += lanes) apply_lanes<lanes, Fields>(now, weight, gradient, field, e);
    if constexpr (lanes > 4)
      for (; e + 4 <= count; e += 4) apply_lanes<4, Fields>(now, weight, gradient, field, e);
    for (; e < count; ++e) apply_lanes<1, Fields>(now, weight, gradient, field, e);
  } else {
    for (int e = 0; e < live<Tile>(count); ++e) {
      Compute state[Room];
      state[0] = Compute(0);  // unused without fields: a rule without fields still takes an array
      for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
      now.apply(weight[e], gradient[e], state);
      for (int f = 0; f < Fields; ++f) field[f][e] = state[f];
    }
  }
}

/// apply_tile, then the transforms' changes of the weights.
template <class Tile, int Fields, class Update, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void step_tile(const Update& now, const Transforms& transforms, std::int64_t row,
                                           Compute (&weight)[Tile::elements],
                                           const Compute (&gradient)[Tile::elements],
                                           Compute (&field)[Room][Tile::elements], int count) {
  if constexpr (Transforms::changes) {
    Compute before[Tile::elements];
    for (int e = 0; e < live<Tile>(count); ++e) before[e] = weight[e];
    apply_tile<Tile, Fields>(now, weight, gradient, field, count);
    for (int e = 0; e < live<Tile>(count); ++e) weight[e] = transforms.changed(before[e], weight[e], row);
  } else {
    apply_tile<Tile, Fields>(now, weight, gradient, field, count);
  }
}

}  // namespace ferry::kernels
