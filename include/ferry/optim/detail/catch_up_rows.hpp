// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/optim/detail/coast_tile.hpp>
#include <ferry/optim/detail/moment_ratio.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstdint>
#include <utility>

namespace ferry::kernels {

/// An update that says when steps without a gradient no longer change a weight.
template <class Update, class Compute, int Room>
concept Rests = requires(const Update& update, Compute& weight, Compute (&state)[Room]) {
  update.at_rest(weight, state);
  update.decay_state(state, std::int64_t{});
};
/// An update that says when they only decay it.
template <class Update, class Compute, int Room>
concept Decays = requires(const Update& update, Compute& weight, Compute (&state)[Room]) {
  { update.decay_phase(weight, state, std::int64_t{}) } -> std::same_as<std::int64_t>;
  update.decay_weight(weight);
  update.decay_state(state, std::int64_t{});
};

/// The elements of a tile whose steps need no apply(), before step `until` of those that their row missed.
template <int Elements>
struct idle_elements {
  std::int64_t until[Elements];
  bool idle[Elements];
  bool decays[Elements];  ///< false: at rest, until the last step
};

/// Decays numbers by missed steps [first, last) of a row. Coefficients are loaded as long as they change.
template <class Schedule, class... Number>
KOKKOS_FORCEINLINE_FUNCTION void decay_numbers(const Schedule& schedule, std::int64_t row_step,
                                               std::int64_t first, std::int64_t last, Number&... number) {
  using update = typename Schedule::update;
  const std::int64_t changing =
      schedule.before_steady(row_step) < last ? schedule.before_steady(row_step) : last;
  std::int64_t j = first;
  for (; j < changing; ++j) {
    const update& now = schedule.at(row_step, j);
    (now.decay_weight(number), ...);
  }
  if (j == last) return;
  const update now = schedule.at(row_step, last - 1);
  for (; j < last; ++j) (now.decay_weight(number), ...);
}

/// Decays the tile's weights that decay, by missed steps [first, last). Others are computed along: without
/// branches a step is the decay alone.
template <class Tile, class Schedule, class Compute, int... Part>
KOKKOS_FORCEINLINE_FUNCTION void decay_tile(const Schedule& schedule, std::int64_t row_step,
                                            std::int64_t first, std::int64_t last,
                                            Compute (&weight)[Tile::elements],
                                            const bool (&decays)[Tile::elements],
                                            std::integer_sequence<int, Part...>) {
  using update = typename Schedule::update;
  constexpr int lanes = lanes_in_tile<Tile, update, Compute>();
  Compute decayed[Tile::elements];
  for (int e = 0; e < Tile::elements; ++e) decayed[e] = decays[e] ? weight[e] : Compute(0);
  if constexpr (lanes != 0) {
    using number = typename ferry::detail::lanes_of<Compute>::template type<lanes>;
    number numbers[] = {number::load(decayed + Part * lanes)...};
    decay_numbers(schedule, row_step, first, last, numbers[Part]...);
    (numbers[Part].store(decayed + Part * lanes), ...);
  } else {
    decay_numbers(schedule, row_step, first, last, decayed[Part]...);
  }
  for (int e = 0; e < Tile::elements; ++e)
    if (decays[e]) weight[e] = decayed[e];
}

/// The number of registers or elements that decay_tile holds.
template <class Tile, class Update, class Compute>
consteval int parts_of_tile() {
  constexpr int lanes = lanes_in_tile<Tile, Update, Compute>();
  return lanes == 0 ? Tile::elements : Tile::elements / lanes;
}

/// One step without a gradient, of the elements that are not idle.
template <class Tile, int Fields, class Update, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void miss_step(const Update& now, const Transforms& transforms, std::int64_t row,
                                           Compute (&weight)[Tile::elements],
                                           Compute (&field)[Room][Tile::elements], int count,
                                           const bool (&idle)[Tile::elements]) {
  for (int e = 0; e < live<Tile>(count); ++e)
    if (!idle[e]) {
      Compute state[Room];
      state[0] = Compute(0);  // unused without fields: a rule without fields still takes an array
      for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
      const Compute before = weight[e];
      now.apply(weight[e], Compute(0), state);
      weight[e] = transforms.changed(before, weight[e], row);
      for (int f = 0; f < Fields; ++f) field[f][e] = state[f];
    }
}
/// For all elements of a host's tile, in its registers.
template <class Tile, int Fields, class Update, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void miss_step_in_lanes(const Update& now, const Transforms& transforms,
                                                    std::int64_t row, Compute (&weight)[Tile::elements],
                                                    Compute (&field)[Room][Tile::elements], int count) {
  const Compute gradient[Tile::elements] = {};
  if constexpr (Transforms::changes) {
    Compute before[Tile::elements];
    for (int e = 0; e < live<Tile>(count); ++e) before[e] = weight[e];
    apply_tile<Tile, Fields>(now, weight, gradient, field, count);
    for (int e = 0; e < live<Tile>(count); ++e) weight[e] = transforms.changed(before[e], weight[e], row);
  } else {
    apply_tile<Tile, Fields>(now, weight, gradient, field, count);
  }
}

/// How many of the next `left` missed steps of an element need no apply(). Applies them to the state: one
/// power of its factors replaces them. `decays` says whether the weight decays in them.
template <bool MayDecay, class Update, class Compute, int Room>
  requires(MayDecay || Rests<Update, Compute, Room>)
KOKKOS_FORCEINLINE_FUNCTION std::int64_t idle_steps(const Update& resting, Compute& weight,
                                                    Compute (&state)[Room], std::int64_t left, bool& decays) {
  std::int64_t steps = 0;
  decays = false;
  if constexpr (Rests<Update, Compute, Room>)
    if (resting.at_rest(weight, state)) steps = left;
  if constexpr (MayDecay)
    if (steps == 0) {
      steps = resting.decay_phase(weight, state, left);
      if (steps < left) steps -= steps % optim::steps_between_asks;
      decays = steps > 0;
    }
  if (steps > 0) resting.decay_state(state, steps);
  return steps;
}

/// Missed steps from `first` on, of the elements that do not rest. Returns `missed`, or before it a step that
/// asks, if all elements are at that step or rest.
template <bool Coasts, class Tile, int Fields, class Schedule, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t miss_steps(const Schedule& schedule, const Transforms& transforms,
                                                    std::int64_t row, std::int64_t row_step,
                                                    std::int64_t first, std::int64_t missed,
                                                    Compute (&weight)[Tile::elements],
                                                    Compute (&field)[Room][Tile::elements], int count,
                                                    bool (&rests)[Tile::elements]) {
  using update = typename Schedule::update;
  constexpr bool decays = Decays<update, Compute, Room> && !Transforms::changes;
  constexpr bool asks = Rests<update, Compute, Room> || decays;
  constexpr bool by_lanes = lanes_in_tile<Tile, update, Compute>() != 0;
  // The first missed step that may test for rest: no later step has options that could move a resting
  // element.
  const std::int64_t ask_from = schedule.before_rest(row_step) > 0 ? schedule.before_rest(row_step) : 0;
  idle_elements<Tile::elements> elements;
  bool any_idle = false;
  for (int e = 0; e < Tile::elements; ++e) {
    elements.until[e] = missed;
    elements.idle[e] = Coasts && rests[e];
    elements.decays[e] = false;
    any_idle = any_idle || elements.idle[e];
  }
  for (std::int64_t j = first; j < missed;) {
    if constexpr (asks) {
      if (j >= ask_from && (j - ask_from) % optim::steps_between_asks == 0) {
        if constexpr (Coasts)
          if (j > first && ask_from == 0) {
            bool aligned = true;
            for (int e = 0; e < Tile::elements; ++e) {
              rests[e] = elements.idle[e] && elements.until[e] == missed && !elements.decays[e];
              aligned = aligned && (rests[e] || !elements.idle[e] || elements.until[e] <= j);
            }
            if (aligned) return j;
          }
        std::int64_t next = missed;
        bool any_decays = false;
        // Steps with one lr change less and less.
        update resting = schedule.resting;
        if (j >= schedule.before_steady(row_step)) resting = schedule.at(row_step, j);
        any_idle = false;
        for (int e = 0; e < live<Tile>(count); ++e) {
          if (!elements.idle[e] || elements.until[e] <= j) {
            Compute state[Room];
            state[0] = Compute(0);
            for (int f = 0; f < Fields; ++f) state[f] = field[f][e];
            elements.until[e] =
                j + idle_steps<decays>(resting, weight[e], state, missed - j, elements.decays[e]);
            for (int f = 0; f < Fields; ++f) field[f][e] = state[f];
            elements.idle[e] = elements.until[e] > j;
          }
          any_idle = any_idle || elements.idle[e];
          any_decays = any_decays || elements.decays[e];
          if (elements.until[e] < next) next = elements.until[e];
        }
        if (next > j) {
          if constexpr (decays)
            if (any_decays)
              decay_tile<Tile>(schedule, row_step, j, next, weight, elements.decays,
                               std::make_integer_sequence<int, parts_of_tile<Tile, update, Compute>()>());
          j = next;
          continue;
        }
      }
    }
    const update now = schedule.at(row_step, j++);
    if constexpr (by_lanes)
      if (!any_idle) {
        miss_step_in_lanes<Tile, Fields>(now, transforms, row, weight, field, count);
        continue;
      }
    miss_step<Tile, Fields>(now, transforms, row, weight, field, count, elements.idle);
    if constexpr (decays)
      for (int e = 0; e < live<Tile>(count); ++e)
        if (elements.decays[e]) now.decay_weight(weight[e]);
  }
  return missed;
}

/// True if a device's tile coasts through missed steps.
template <class Tile, class Schedule, class Transforms, class Compute, int Room>
inline constexpr bool coasts_through = (Coasts<typename Schedule::update, Compute, Room> &&
                                        !Transforms::changes && !Tile::host);

/// Missed steps of a tile from `first` on.
template <class Tile, int Fields, class Schedule, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void finish_missed_steps(const Schedule& schedule, const Transforms& transforms,
                                                     std::int64_t row, std::int64_t row_step,
                                                     std::int64_t first, std::int64_t missed,
                                                     Compute (&weight)[Tile::elements],
                                                     Compute (&field)[Room][Tile::elements], int count) {
  constexpr bool coasts = coasts_through<Tile, Schedule, Transforms, Compute, Room>;
  bool rests[Tile::elements] = {};
  for (std::int64_t j = first; j < missed;) {
    if constexpr (coasts)
      if (schedule.before_rest(row_step) <= 0) {
        j = coast_tile<Tile, Fields>(schedule, row_step, j, missed, weight, field, rests);
        if (j == missed) return;
      }
    j = miss_steps<coasts, Tile, Fields>(schedule, transforms, row, row_step, j, missed, weight, field, count,
                                         rests);
  }
}
/// Applies to a tile of a row the steps that the row missed, with gradients of zero. Elements at rest, whose
/// weights such steps no longer change, or only decay, are left out of most of that. Fields of the Room
/// places of `field` are in use.
template <class Tile, int Fields, class Schedule, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void catch_up_tile(const Schedule& schedule, const Transforms& transforms,
                                               std::int64_t row, Compute (&weight)[Tile::elements],
                                               Compute (&field)[Room][Tile::elements], int count) {
  const std::int64_t row_step = schedule.last_step(row), missed = schedule.missed(row_step);
  std::int64_t first = 0;
  if constexpr (coasts_through<Tile, Schedule, Transforms, Compute, Room>) {
    const auto last = static_cast<std::uint32_t>(row_step), count_missed = schedule.count_missed(last);
    first = count_missed - coast_whole_tile<Tile, Fields>(schedule, last, count_missed, weight, field);
  }
  finish_missed_steps<Tile, Fields>(schedule, transforms, row, row_step, first, missed, weight, field, count);
}

}  // namespace ferry::kernels
