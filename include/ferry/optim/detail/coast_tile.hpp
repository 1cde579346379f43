// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/moment_ratio.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstdint>

namespace ferry::kernels {

/// An update that computes steps without a gradient by fewer instructions while numbers are in the middle of
/// their range. On a device, whose threads interleave the elements of a tile then.
template <class Update, class Compute, int Room>
concept Coasts = requires(const Update& update, Compute& weight, Compute (&state)[Room]) {
  requires std::same_as<typename Update::middle_update, Update>;
  { update.coasts(update, weight, state) } -> std::same_as<bool>;
  update.at_rest(weight, state);
  update.coast(update, weight, state);
  weight.middle_root();
};

/// Missed steps [first, last) of the elements of a tile, by coast(). Elements at rest stay as they are: they
/// are computed along, so that there are no branches.
template <bool AnyRest, class Tile, int Fields, class Schedule, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void coast_between(const Schedule& schedule, std::int64_t row, std::int64_t first,
                                               std::int64_t last, Compute (&weight)[Tile::elements],
                                               Compute (&field)[Room][Tile::elements],
                                               const bool (&rests)[Tile::elements]) {
  const typename Schedule::update* now = &schedule.at(row, first);
  for (auto steps = static_cast<int>(last - first); steps > 0; --steps, ++now)
    for (int e = 0; e < Tile::elements; ++e) {
      Compute state[Room];
      for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
      Compute moved = weight[e];
      schedule.resting.coast(*now, moved, state);
      if (AnyRest && rests[e]) continue;
      weight[e] = moved;
      for (int f = 0; f < Fields; ++f) field[f][e] = state[f];
    }
}

/// True if an element coasts. Computed without branches.
template <int Fields, class Update, class Compute, int Room, int Elements>
KOKKOS_FORCEINLINE_FUNCTION bool coasts_in_tile(const Update& options, const Update& next,
                                                const Compute (&weight)[Elements],
                                                const Compute (&field)[Room][Elements], int e) {
  Compute state[Room];
  for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
  return options.coasts(next, weight[e], state);
}

/// Coasts through missed steps from `first` on as long as every element coasts or is at rest until the last
/// one. Returns the step that follows, one that asks. `rests` says which elements have the state of the last.
template <class Tile, int Fields, class Schedule, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t coast_tile(const Schedule& schedule, std::int64_t row,
                                                    std::int64_t first, std::int64_t missed,
                                                    Compute (&weight)[Tile::elements],
                                                    Compute (&field)[Room][Tile::elements],
                                                    bool (&rests)[Tile::elements]) {
  using update = typename Schedule::update;
  std::int64_t j = first;
  while (j < missed) {
    const update& next = schedule.at(row, j);
    bool asks = false, any_rest = false;
    for (int e = 0; e < Tile::elements; ++e) {
      const bool coasts = coasts_in_tile<Fields>(schedule.resting, next, weight, field, e);
      asks = asks || !(coasts || rests[e]);
      any_rest = any_rest || rests[e];
    }
    if (asks) {
      const update options = j >= schedule.before_steady(row) ? next : schedule.resting;
      bool may_coast = true, all_rest = true;
      for (int e = 0; e < Tile::elements; ++e) {
        if (!rests[e] && !coasts_in_tile<Fields>(schedule.resting, next, weight, field, e)) {
          Compute state[Room];
          for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
          rests[e] = options.at_rest(weight[e], state);
          if (rests[e]) options.decay_state(state, missed - j);
          for (int f = 0; f < Fields; ++f) field[f][e] = state[f];
          may_coast = may_coast && rests[e];
        }
        all_rest = all_rest && rests[e];
      }
      any_rest = true;
      if (all_rest) return missed;
      if (!may_coast) return j;
    }
    const std::int64_t last = missed - j < optim::steps_between_asks ? missed : j + optim::steps_between_asks;
    if (any_rest)
      coast_between<true, Tile, Fields>(schedule, row, j, last, weight, field, rests);
    else
      coast_between<false, Tile, Fields>(schedule, row, j, last, weight, field, rests);
    j = last;
  }
  return j;
}

}  // namespace ferry::kernels
