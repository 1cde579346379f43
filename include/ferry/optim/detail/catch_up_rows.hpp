// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// One element's weight and state.
template <class Compute, int Room>
struct element {
  Compute weight;
  Compute state[Room];
};

/// Applies to elements of one row the steps that the row missed, with gradients of zero. Once an element is
/// at rest, so that steps without a gradient no longer change its weight, one power of the state's factors
/// replaces its remaining steps. The test runs every few steps and for each element alone, so the result does
/// not depend on which elements a thread holds.
template <class Schedule, class Transforms, class Compute, int Room, int Elements>
KOKKOS_FORCEINLINE_FUNCTION void catch_up(const Schedule& schedule, const Transforms& transforms,
                                          std::int64_t row, element<Compute, Room> (&elements)[Elements],
                                          int count) {
  constexpr std::int64_t asked_each = 16;
  const std::int64_t missed = schedule.missed(row);
  if (missed <= 0) return;
  using update = typename Schedule::update;
  constexpr bool can_rest = requires(const update& u, Compute& weight, Compute(&state)[Room]) {
    u.at_rest(weight, state);
    u.decay_state(state, std::int64_t{});
  };
  // The first missed step that may test for rest: no later step has options that could move a resting
  // element.
  const std::int64_t ask_from = schedule.before_rest(row) > 0 ? schedule.before_rest(row) : 0;
  bool resting[Elements];
  for (int e = 0; e < Elements; ++e) resting[e] = e >= count;
  for (std::int64_t j = 0; j < missed; ++j) {
    const update now = schedule.at(row, j);
    if constexpr (can_rest) {
      if (j >= ask_from && (j - ask_from) % asked_each == 0) {
        bool finished = true;
        for (int e = 0; e < count; ++e) {
          if (!resting[e] && schedule.resting.at_rest(elements[e].weight, elements[e].state)) {
            schedule.resting.decay_state(elements[e].state, missed - j);
            resting[e] = true;
          }
          finished = finished && resting[e];
        }
        if (finished) return;
      }
    }
    for (int e = 0; e < count; ++e)
      if (!resting[e]) {
        const Compute before = elements[e].weight;
        now.apply(elements[e].weight, Compute(0), elements[e].state);
        elements[e].weight = transforms.changed(before, elements[e].weight, row);
      }
  }
}

/// catch_up for a tile with weights and fields in separate arrays. Fields of the Room places of `field` are
/// in use.
template <class Tile, int Fields, class Schedule, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void catch_up_tile(const Schedule& schedule, const Transforms& transforms,
                                               std::int64_t row, Compute (&weight)[Tile::elements],
                                               Compute (&field)[Room][Tile::elements], int count) {
  element<Compute, Room> elements[Tile::elements];
  for (int e = 0; e < live<Tile>(count); ++e) {
    elements[e].weight = weight[e];
    elements[e].state[0] = Compute(0);
    for (int f = 0; f < Fields; ++f) elements[e].state[f] = field[f][e];
  }
  catch_up(schedule, transforms, row, elements, live<Tile>(count));
  for (int e = 0; e < live<Tile>(count); ++e) {
    weight[e] = elements[e].weight;
    for (int f = 0; f < Fields; ++f) field[f][e] = elements[e].state[f];
  }
}

}  // namespace ferry::kernels
