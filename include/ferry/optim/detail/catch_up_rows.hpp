// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstdint>
#include <utility>

namespace ferry::kernels {

/// Missed steps between two questions whether elements of a row are dormant. The answer for an element
/// depends on that element alone, so results are the same for any tile.
inline constexpr std::int64_t steps_between_questions = 16;

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

/// Copies the live elements of a tile: a host by registers, not by string instructions.
template <class Tile, class Compute>
KOKKOS_FORCEINLINE_FUNCTION void copy_array(const Compute (&source)[Tile::elements],
                                            Compute (&target)[Tile::elements], int count) {
  if constexpr (Tile::host)
    load_tile<Tile>(target, static_cast<const Compute*>(source), count);
  else
    for (int e = 0; e < Tile::elements; ++e) target[e] = source[e];
}
/// Weights and state of a tile.
template <class Tile, int Fields, class Compute, int Room>
struct tile_numbers {
  Compute weight[Tile::elements];
  Compute field[Room][Tile::elements];

  KOKKOS_FORCEINLINE_FUNCTION void copy_to(Compute (&target_weight)[Tile::elements],
                                           Compute (&target_field)[Room][Tile::elements], int count) const {
    copy_array<Tile>(weight, target_weight, count);
    for (int f = 0; f < Fields; ++f) copy_array<Tile>(field[f], target_field[f], count);
  }
  KOKKOS_FORCEINLINE_FUNCTION void copy_to(tile_numbers& target, int count) const {
    copy_to(target.weight, target.field, count);
  }
  KOKKOS_FORCEINLINE_FUNCTION void copy_element_to(tile_numbers& target, int e) const {
    target.weight[e] = weight[e];
    for (int f = 0; f < Fields; ++f) target.field[f][e] = field[f][e];
  }
};

/// Decays numbers by missed steps [first, last) of a row. Coefficients are loaded as long as they change.
template <class Schedule, class... Number>
KOKKOS_FORCEINLINE_FUNCTION void decay_numbers(const Schedule& schedule, std::int64_t row_step,
                                               std::int64_t first, std::int64_t last, Number&... number) {
  std::int64_t j = first;
  for (; j < last && j < schedule.before_steady(row_step); ++j)
    (schedule.at(row_step, j).decay_weight(number), ...);
  if (j == last) return;
  const typename Schedule::update now = schedule.at(row_step, last - 1);
  for (; j < last; ++j) (now.decay_weight(number), ...);
}

/// Decays all weights of a tile by missed steps [first, last).
template <class Tile, class Schedule, class Compute, int... Part>
KOKKOS_FORCEINLINE_FUNCTION void decay_tile(const Schedule& schedule, std::int64_t row_step,
                                            std::int64_t first, std::int64_t last,
                                            Compute (&weight)[Tile::elements],
                                            std::integer_sequence<int, Part...>) {
  constexpr int lanes = lanes_in_tile<Tile, typename Schedule::update, Compute>();
  if constexpr (lanes != 0) {
    using number = typename ferry::detail::lanes_of<Compute>::template type<lanes>;
    number numbers[] = {number::load(weight + Part * lanes)...};
    decay_numbers(schedule, row_step, first, last, numbers[Part]...);
    (numbers[Part].store(weight + Part * lanes), ...);
  } else {
    decay_numbers(schedule, row_step, first, last, weight[Part]...);
  }
}

/// The missed steps of one tile, with gradients of zero.
template <class Tile, int Fields, class Schedule, class Transforms, class Compute, int Room>
struct missed_steps {
  using update = typename Schedule::update;
  using numbers = tile_numbers<Tile, Fields, Compute, Room>;
  static constexpr bool rests = Rests<update, Compute, Room>;
  static constexpr bool decays = Decays<update, Compute, Room> && !Transforms::changes;

  Schedule schedule;
  Transforms transforms;
  std::int64_t row;
  std::int64_t row_step;  ///< the last step applied to the row
  std::int64_t missed;
  int count;  ///< live elements of the tile

  /// All of them. An element that a step moves is not dormant: only the others are asked.
  KOKKOS_FORCEINLINE_FUNCTION void apply(numbers& tile) const {
    if constexpr (rests || decays) {
      std::int64_t question = schedule.before_rest(row_step) > 0 ? schedule.before_rest(row_step) : 0;
      apply_run(tile, 0, question < missed ? question : missed);
      while (question < missed) {
        numbers before;
        tile.copy_to(before, count);
        apply_run(tile, question, question + 1);
        if (!all_move(schedule.at(row_step, question), before, tile)) {
          // In memory, which a function takes: others stay in registers.
          const missed_steps steps = *this;
          numbers late;
          before.copy_to(late, count);
          steps.apply_late(late, question);
          return late.copy_to(tile, count);
        }
        const std::int64_t next = end_of_run(question);
        apply_run(tile, question + 1, next);
        question = next;
      }
    } else {
      apply_run(tile, 0, missed);
    }
  }

 private:
  /// The question that follows the one of a step, or the end.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t end_of_run(std::int64_t question) const {
    return missed - question < steps_between_questions ? missed : question + steps_between_questions;
  }

  /// Missed steps [first, last) of all elements.
  KOKKOS_FORCEINLINE_FUNCTION void apply_run(numbers& tile, std::int64_t first, std::int64_t last) const {
    const Compute gradient[Tile::elements] = {};
    const update* next = &schedule.at(row_step, first);
    for (const update* const end = next + (last - first); next < end; ++next) {
      const update now = *next;
      step_tile<Tile, Fields>(now, transforms, row, tile.weight, gradient, tile.field, count);
    }
  }

  /// True if a step surely did more to each weight than to decay it.
  KOKKOS_FORCEINLINE_FUNCTION bool all_move([[maybe_unused]] const update& now, const numbers& before,
                                            const numbers& after) const {
    const auto differ = [](const Compute& a, const Compute& b) { return (a < b) != (a > b); };
    bool result = !Transforms::changes;
    for (int e = 0; e < live<Tile>(count); ++e) {
      result = result && differ(before.weight[e], after.weight[e]);
      if constexpr (decays) {
        Compute decayed = before.weight[e];
        now.decay_weight(decayed);
        result = result && differ(decayed, after.weight[e]);
      }
    }
    return result;
  }

  /// Missed steps from `first` on, a step of a question. Elements at rest and those that only decay are
  /// dormant: they are kept apart with the state of their last dormant step, and ones are computed in their
  /// stead. A function of its own, since it would take registers from tiles that move.
  [[gnu::noinline]] KOKKOS_FUNCTION void apply_late(numbers& late, std::int64_t first) const {
    numbers tile, dormant;
    late.copy_to(tile, count);
    std::int64_t end[Tile::elements];  // of dormancy
    bool is_dormant[Tile::elements] = {}, is_decaying[Tile::elements] = {};
    for (int e = 0; e < Tile::elements; ++e) {
      end[e] = first;
      dormant.weight[e] = late.weight[0];
      for (int f = 0; f < Fields; ++f) dormant.field[f][e] = late.field[f][0];
    }
    for (std::int64_t j = first; j < missed;) {
      // Steps with one lr change less and less.
      update options = schedule.resting;
      if (j >= schedule.before_steady(row_step)) options = schedule.at(row_step, j);
      std::int64_t next = missed;
      for (int e = 0; e < live<Tile>(count); ++e) {
        if (end[e] <= j) {
          if (is_dormant[e])
            dormant.copy_element_to(tile, e);
          else
            tile.copy_element_to(dormant, e);
          const std::int64_t steps = dormant_steps(options, dormant, e, missed - j, is_decaying[e]);
          end[e] = j + steps;
          is_dormant[e] = steps != 0;
        }
        if (end[e] < next) next = end[e];
      }
      if (next <= j) {
        next = end_of_run(j);
        for (int e = 0; e < live<Tile>(count); ++e)
          if (is_dormant[e]) {
            tile.weight[e] = Compute(1);
            for (int f = 0; f < Fields; ++f) tile.field[f][e] = Compute(1);
          }
        apply_run(tile, j, next);
      }
      if constexpr (decays) decay(dormant, is_decaying, j, next);
      j = next;
    }
    for (int e = 0; e < live<Tile>(count); ++e) (is_dormant[e] ? dormant : tile).copy_element_to(late, e);
  }

  /// How many of the next `left` missed steps an element is dormant. Applies them to its state: one power of
  /// its factors replaces them.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t dormant_steps(const update& options, numbers& dormant, int e,
                                                         std::int64_t left, bool& is_decaying) const {
    Compute state[Room];
    state[0] = Compute(0);  // unused without fields
    for (int f = 0; f < Fields; ++f) state[f] = dormant.field[f][e];
    std::int64_t steps = 0;
    is_decaying = false;
    if constexpr (rests)
      if (options.at_rest(dormant.weight[e], state)) steps = left;
    if constexpr (decays)
      if (steps == 0) {
        steps = options.decay_phase(dormant.weight[e], state, left);
        if (steps < left) steps -= steps % steps_between_questions;
        is_decaying = steps > 0;
      }
    if (steps == 0) return 0;
    options.decay_state(state, steps);
    for (int f = 0; f < Fields; ++f) dormant.field[f][e] = state[f];
    return steps;
  }

  /// Decays the dormant weights that decay. Others are computed along: without branches a step is the decay
  /// alone.
  KOKKOS_FORCEINLINE_FUNCTION void decay(numbers& dormant, const bool (&is_decaying)[Tile::elements],
                                         std::int64_t first, std::int64_t last) const {
    Compute weight[Tile::elements];
    bool any = false;
    for (int e = 0; e < Tile::elements; ++e) {
      weight[e] = is_decaying[e] ? dormant.weight[e] : Compute(0);
      any = any || is_decaying[e];
    }
    if (!any) return;
    constexpr int lanes = lanes_in_tile<Tile, update, Compute>();
    decay_tile<Tile>(schedule, row_step, first, last, weight,
                     std::make_integer_sequence<int, Tile::elements / (lanes == 0 ? 1 : lanes)>());
    for (int e = 0; e < Tile::elements; ++e)
      if (is_decaying[e]) dormant.weight[e] = weight[e];
  }
};

/// Applies to a tile of a row the steps that the row missed. Fields of the Room of `field` are in use.
template <class Tile, int Fields, class Schedule, class Transforms, class Compute, int Room>
KOKKOS_FORCEINLINE_FUNCTION void catch_up_tile(const Schedule& schedule, const Transforms& transforms,
                                               std::int64_t row, Compute (&weight)[Tile::elements],
                                               Compute (&field)[Room][Tile::elements], int count) {
  const std::int64_t row_step = schedule.last_step(row), missed = schedule.missed(row_step);
  if (missed <= 0) return;
  tile_numbers<Tile, Fields, Compute, Room> tile;
  copy_array<Tile>(weight, tile.weight, count);
  for (int f = 0; f < Fields; ++f) copy_array<Tile>(field[f], tile.field[f], count);
  missed_steps<Tile, Fields, Schedule, Transforms, Compute, Room>{schedule, transforms, row,
                                                                  row_step, missed,     count}
      .apply(tile);
  tile.copy_to(weight, field, count);
}

}  // namespace ferry::kernels
