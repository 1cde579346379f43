// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>

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

/// The missed steps of one tile, with gradients of zero. Elements at rest and those that only decay are
/// dormant. A dormant element has the state of its last dormant step at once, and runs of steps leave it out.
template <int Fields, class Schedule, class Transforms, class Compute, class Tile>
struct missed_steps {
  using update = typename Schedule::update;
  using tile_type = row_tile<Compute, Tile, Fields>;
  static constexpr bool rests = Rests<update, Compute, tile_type::room>;
  static constexpr bool decays = Decays<update, Compute, tile_type::room> && !Transforms::changes;

  static constexpr int lanes = lanes_in_tile<Tile, update, Compute>();

  const Schedule& schedule;
  const Transforms& transforms;
  std::int64_t row;
  std::int64_t row_step;  ///< the last step applied to the row
  std::int64_t missed;
  int count;  ///< live elements of the tile

  /// All of them.
  KOKKOS_FORCEINLINE_FUNCTION void apply(tile_type& tile) const {
    if constexpr (!rests && !decays) {
      run(tile, 0, missed);
    } else {
      std::int64_t j = schedule.before_questions(row_step);
      j = j < 0 ? 0 : j < missed ? j : missed;
      run(tile, 0, j);
      std::int64_t end[Tile::elements] = {};  // of dormancy
      bool is_decaying[Tile::elements] = {};
      while (j < missed) {
        tile_type moved = tile;
        for (int e = 0; e < live<Tile>(count); ++e)
          if (end[e] > j) moved.set_ones(e);
        run(moved, j, j + 1);
        bool all_move = true;
        for (int e = 0; e < live<Tile>(count); ++e)
          all_move = all_move && end[e] <= j && moves(j, tile.weight[e], moved.weight[e]);
        std::int64_t next = all_move ? j : missed;
        for (int e = 0; e < live<Tile>(count) && !all_move; ++e) {
          if (end[e] <= j && !moves(j, tile.weight[e], moved.weight[e]))
            end[e] = j + dormant_steps(j, tile, e, is_decaying[e]);
          if (end[e] < next) next = end[e];
        }
        if (next <= j) {
          next = missed - j < steps_between_questions ? missed : j + steps_between_questions;
          run(moved, j + 1, next);
          if (all_move) tile = moved;
          for (int e = 0; e < live<Tile>(count) && !all_move; ++e)
            if (end[e] <= j) tile.set_element(e, moved);
        }
        if constexpr (decays) {
          bool any = false;
          for (int e = 0; e < live<Tile>(count); ++e) any = any || (is_decaying[e] && end[e] > j);
          if (any) {
            moved = tile;
            decay_tile(moved, j, next,
                       std::make_integer_sequence<int, Tile::elements / (lanes == 0 ? 1 : lanes)>());
            for (int e = 0; e < live<Tile>(count); ++e)
              if (is_decaying[e] && end[e] > j) tile.weight[e] = moved.weight[e];
          }
        }
        j = next;
      }
    }
  }

 private:
  /// Decays numbers by missed steps [first, last).
  template <class... Number>
  KOKKOS_FORCEINLINE_FUNCTION void decay(std::int64_t first, std::int64_t last, Number&... number) const {
    for (std::int64_t j = first; j < last; ++j)
      (schedule.missed_update(row_step, j).decay_weight(number), ...);
  }
  template <int... Part>
  KOKKOS_FORCEINLINE_FUNCTION void decay_tile(tile_type& tile, std::int64_t first, std::int64_t last,
                                              std::integer_sequence<int, Part...>) const {
    if constexpr (lanes == 0) {
      decay(first, last, tile.weight[Part]...);
    } else {
      using number = typename ferry::detail::lanes_of<Compute>::template type<lanes>;
      number numbers[] = {number::load(tile.weight + Part * lanes)...};
      decay(first, last, numbers[Part]...);
      (numbers[Part].store(tile.weight + Part * lanes), ...);
    }
  }

  /// Missed steps [first, last) of all elements.
  KOKKOS_FORCEINLINE_FUNCTION void run(tile_type& tile, std::int64_t first, std::int64_t last) const {
    const Compute gradient[Tile::elements] = {};
    for (std::int64_t j = first; j < last; ++j) {
      const update now = schedule.missed_update(row_step, j);
      step_tile(now, transforms, row, tile, gradient, count);
    }
  }

  /// True if missed step j surely did more to a weight than to decay it: such elements are not dormant.
  KOKKOS_FORCEINLINE_FUNCTION bool moves([[maybe_unused]] std::int64_t j, const Compute& before,
                                         const Compute& after) const {
    bool result = !Transforms::changes && (before < after || before > after);
    if constexpr (decays) {
      Compute decayed = before;
      schedule.missed_update(row_step, j).decay_weight(decayed);
      result = result && (decayed < after || decayed > after);
    }
    return result;
  }

  /// How many missed steps from j on an element is dormant. Applies them to its state: one power of its
  /// factors replaces them.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t dormant_steps(std::int64_t j, tile_type& tile, int e,
                                                         bool& is_decaying) const {
    const update& options = schedule.question(row_step, j);
    auto element = tile.state(e);
    std::int64_t steps = 0;
    is_decaying = false;
    if constexpr (rests)
      if (options.at_rest(tile.weight[e], element.field)) steps = missed - j;
    if constexpr (decays)
      if (steps == 0) {
        steps = options.decay_phase(tile.weight[e], element.field, missed - j);
        if (steps < missed - j) steps -= steps % steps_between_questions;
        is_decaying = steps > 0;
      }
    if (steps != 0) {
      options.decay_state(element.field, steps);
      tile.set_state(e, element);
    }
    return steps;
  }
};

}  // namespace ferry::kernels
