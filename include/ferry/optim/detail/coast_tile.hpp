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
  { update.may_coast(update) } -> std::same_as<bool>;
  static_cast<bool>(update.coasts(update, weight, state));
  update.at_rest(weight, state);
  update.coast(update, weight, state);
  weight.middle_root();
};

/// `steps` missed steps of the elements of a tile, by coast(), from `now` on. Elements at rest stay as they
/// are: they are computed along, so that there are no branches.
template <bool AnyRest, class Tile, int Fields, class Update, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void coast_steps(const Update& options, const Update* now, int steps,
                                             Compute (&weight)[Tile::elements],
                                             Compute (&field)[Room][Tile::elements],
                                             const bool (&rests)[Tile::elements]) {
  for (; steps > 0; --steps, ++now)
    for (int e = 0; e < Tile::elements; ++e) {
      Compute state[Room];
      for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
      Compute moved = weight[e];
      options.coast(*now, moved, state);
      if (AnyRest && rests[e]) continue;
      weight[e] = moved;
      for (int f = 0; f < Fields; ++f) field[f][e] = state[f];
    }
}

/// True if an element coasts: a bool or what converts to one. Computed without branches.
template <int Fields, class Update, class Compute, int Room, int Elements>
KOKKOS_FORCEINLINE_FUNCTION auto coasts_in_tile(const Update& options, const Update& next,
                                                const Compute (&weight)[Elements],
                                                const Compute (&field)[Room][Elements], int e) {
  Compute state[Room];
  for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
  return options.coasts(next, weight[e], state);
}

/// Coasts through the missed steps of a row as long as every element coasts. Returns how many are left.
template <class Tile, int Fields, class Schedule, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t coast_whole_tile(const Schedule& schedule, std::uint32_t last,
                                                           std::uint32_t missed,
                                                           Compute (&weight)[Tile::elements],
                                                           Compute (&field)[Room][Tile::elements]) {
  constexpr bool rests[Tile::elements] = {};
  constexpr auto most = static_cast<std::uint32_t>(optim::steps_between_asks);
  if (last < schedule.coast_from) return missed;
  const typename Schedule::update* next = &schedule.at(last, 0);
  std::uint32_t left = missed;
  while (left != 0) {
    using optim::both;
    auto all_coast = coasts_in_tile<Fields>(schedule.resting, *next, weight, field, 0);
    for (int e = 1; e < Tile::elements; ++e)
      all_coast = both(all_coast, coasts_in_tile<Fields>(schedule.resting, *next, weight, field, e));
    if (!(schedule.resting.may_coast(*next) && all_coast)) break;
    const std::uint32_t steps = left < most ? left : most;
    coast_steps<false, Tile, Fields>(schedule.resting, next, static_cast<int>(steps), weight, field, rests);
    next += steps;
    left -= steps;
  }
  return left;
}

/// Coasts through missed steps from `first` on as long as every element coasts or is at rest until the last
/// one. Returns the step that follows, one that asks. `rests` says which elements have the state of the last.
template <class Tile, int Fields, class Schedule, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t coast_tile(const Schedule& schedule, std::int64_t row_step,
                                                    std::int64_t first, std::int64_t missed,
                                                    Compute (&weight)[Tile::elements],
                                                    Compute (&field)[Room][Tile::elements],
                                                    bool (&rests)[Tile::elements]) {
  using update = typename Schedule::update;
  std::int64_t j = first;
  while (j < missed) {
    const update& next = schedule.at(row_step, j);
    const bool may_coast = schedule.resting.may_coast(next);
    bool asks = false, any_rest = false;
    for (int e = 0; e < Tile::elements; ++e) {
      const bool coasts = may_coast && coasts_in_tile<Fields>(schedule.resting, next, weight, field, e);
      asks = asks || !(coasts || rests[e]);
      any_rest = any_rest || rests[e];
    }
    if (asks) {
      const update options = j >= schedule.before_steady(row_step) ? next : schedule.resting;
      bool none_asks = true, all_rest = true;
      for (int e = 0; e < Tile::elements; ++e) {
        if (!rests[e] && !(may_coast && coasts_in_tile<Fields>(schedule.resting, next, weight, field, e))) {
          Compute state[Room];
          for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
          rests[e] = options.at_rest(weight[e], state);
          if (rests[e]) options.decay_state(state, missed - j);
          for (int f = 0; f < Fields; ++f) field[f][e] = state[f];
          none_asks = none_asks && rests[e];
        }
        all_rest = all_rest && rests[e];
      }
      any_rest = true;
      if (all_rest) return missed;
      if (!none_asks) return j;
    }
    const std::int64_t last = missed - j < optim::steps_between_asks ? missed : j + optim::steps_between_asks;
    const auto steps = static_cast<int>(last - j);
    if (any_rest)
      coast_steps<true, Tile, Fields>(schedule.resting, &next, steps, weight, field, rests);
    else
      coast_steps<false, Tile, Fields>(schedule.resting, &next, steps, weight, field, rests);
    j = last;
  }
  return j;
}

}  // namespace ferry::kernels
