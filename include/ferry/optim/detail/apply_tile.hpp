// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstdint>
#include <utility>

namespace ferry::kernels {

/// Weights and state of the elements of a tile. Separate arrays, so that a host's compiler loads and stores
/// vectors of them.
template <class Compute, class Tile, int Fields>
struct row_tile {
  static constexpr int room = Fields == 0 ? 1 : Fields;

  Compute weight[Tile::elements];
  Compute field[room][Tile::elements];

  /// The state of an element. Of an array without fields the first number is unused: rules take one anyway.
  struct element_state {
    Compute field[room];
  };
  KOKKOS_FORCEINLINE_FUNCTION element_state state(int e) const {
    element_state element;
    element.field[0] = Compute(0);
    for (int f = 0; f < Fields; ++f) element.field[f] = field[f][e];
    return element;
  }
  KOKKOS_FORCEINLINE_FUNCTION void set_state(int e, const element_state& element) {
    for (int f = 0; f < Fields; ++f) field[f][e] = element.field[f];
  }
  KOKKOS_FORCEINLINE_FUNCTION void set_ones(int e) {
    weight[e] = Compute(1);
    for (int f = 0; f < Fields; ++f) field[f][e] = Compute(1);
  }
  KOKKOS_FORCEINLINE_FUNCTION void set_element(int e, const row_tile& source) {
    weight[e] = source.weight[e];
    for (int f = 0; f < Fields; ++f) field[f][e] = source.field[f][e];
  }
};

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

/// Updates elements [first, first + Lanes) of a tile. Without fields the loops are left out: at -O0 GCC would
/// keep them, and warn of what they would read.
template <int Lanes, int Fields, class Update, class Compute, class Tile>
KOKKOS_FORCEINLINE_FUNCTION void apply_lanes(const Update& now, row_tile<Compute, Tile, Fields>& tile,
                                             const Compute (&gradient)[Tile::elements], int first) {
  using number = typename ferry::detail::lanes_of<Compute>::template type<Lanes>;
  number fields[row_tile<Compute, Tile, Fields>::room];
  fields[0] = number(Compute(0));
  if constexpr (Fields != 0)
    for (int f = 0; f < Fields; ++f) fields[f] = number::load(tile.field[f] + first);
  number weight = number::load(tile.weight + first);
  now.apply(weight, number::load(gradient + first), fields);
  weight.store(tile.weight + first);
  if constexpr (Fields != 0)
    for (int f = 0; f < Fields; ++f) fields[f].store(tile.field[f] + first);
}

template <int Lanes, int Fields, class Update, class Compute, class Tile, int... Part>
KOKKOS_FORCEINLINE_FUNCTION void apply_parts(const Update& now, row_tile<Compute, Tile, Fields>& tile,
                                             const Compute (&gradient)[Tile::elements],
                                             std::integer_sequence<int, Part...>) {
  (apply_lanes<Lanes, Fields>(now, tile, gradient, Part * Lanes), ...);
}

/// Updates the live elements of a tile: several at once if the update takes them so. A whole tile in lanes
/// has no loop: at -O2 GCC would not unroll it, and so keep the tile in memory.
template <int Fields, class Update, class Compute, class Tile>
KOKKOS_FORCEINLINE_FUNCTION void apply_tile(const Update& now, row_tile<Compute, Tile, Fields>& tile,
                                            const Compute (&gradient)[Tile::elements], int count) {
  constexpr int lanes = lanes_in_tile<Tile, Update, Compute>();
  if constexpr (lanes != 0 && !Tile::partial) {
    apply_parts<lanes, Fields>(now, tile, gradient,
                               std::make_integer_sequence<int, Tile::elements / lanes>());
  } else if constexpr (lanes != 0) {
    int e = 0;
    for (; e + lanes <= count; e += lanes) apply_lanes<lanes, Fields>(now, tile, gradient, e);
    if constexpr (lanes > 4)
      for (; e + 4 <= count; e += 4) apply_lanes<4, Fields>(now, tile, gradient, e);
    for (; e < count; ++e) apply_lanes<1, Fields>(now, tile, gradient, e);
  } else {
    for (int e = 0; e < live<Tile>(count); ++e) {
      auto element = tile.state(e);
      now.apply(tile.weight[e], gradient[e], element.field);
      tile.set_state(e, element);
    }
  }
}

/// apply_tile, then the transforms' changes of the weights.
template <int Fields, class Update, class Transforms, class Compute, class Tile>
KOKKOS_FORCEINLINE_FUNCTION void step_tile(const Update& now, const Transforms& transforms, std::int64_t row,
                                           row_tile<Compute, Tile, Fields>& tile,
                                           const Compute (&gradient)[Tile::elements], int count) {
  if constexpr (Transforms::changes) {
    Compute before[Tile::elements];
    for (int e = 0; e < live<Tile>(count); ++e) before[e] = tile.weight[e];
    apply_tile(now, tile, gradient, count);
    for (int e = 0; e < live<Tile>(count); ++e)
      tile.weight[e] = transforms.changed(before[e], tile.weight[e], row);
  } else {
    apply_tile(now, tile, gradient, count);
  }
}

/// Missed steps between two questions whether elements of a row are dormant. The answer for an element
/// depends on that element alone, so results are the same for any tile.
inline constexpr std::int64_t steps_between_questions = 16;

/// An update that says when steps without a gradient no longer change a weight.
template <class Update, class Compute, int Room>
concept Settles = requires(const Update& update, Compute& weight, Compute (&state)[Room]) {
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
  static constexpr bool settles = Settles<update, Compute, tile_type::room>;
  static constexpr bool decays = Decays<update, Compute, tile_type::room> && !Transforms::changes;

  const Schedule& schedule;
  const Transforms& transforms;
  std::int64_t row;
  std::int64_t row_step;  ///< the last step applied to the row
  std::int64_t missed;
  int count;  ///< live elements of the tile

  /// All of them.
  KOKKOS_FORCEINLINE_FUNCTION void apply(tile_type& tile) const {
    if constexpr (!settles && !decays) {
      run(tile, 0, missed);
    } else {
      std::int64_t j = schedule.before_questions(row_step);
      j = j < 0 ? 0 : j < missed ? j : missed;
      run(tile, 0, j);
      std::int64_t end[Tile::elements];  // of dormancy
      bool is_decaying[Tile::elements] = {};
      for (int e = 0; e < Tile::elements; ++e) end[e] = j;
      while (j < missed) {
        std::int64_t next = missed;
        bool any_decays = false;
        for (int e = 0; e < live<Tile>(count); ++e) {
          if (end[e] <= j) end[e] = j + dormant_steps(j, tile, e, is_decaying[e]);
          if (end[e] < next) next = end[e];
          any_decays = any_decays || is_decaying[e];
        }
        if (next <= j) {
          next = missed - j < steps_between_questions ? missed : j + steps_between_questions;
          tile_type moved = tile;
          for (int e = 0; e < live<Tile>(count); ++e)
            if (end[e] > j) moved.set_ones(e);  // numbers of dormant elements may be subnormal
          run(moved, j, next);
          for (int e = 0; e < live<Tile>(count); ++e)
            if (end[e] <= j) tile.set_element(e, moved);
        }
        if constexpr (decays)
          if (any_decays) decay(tile, is_decaying, j, next);
        j = next;
      }
    }
  }

 private:
  /// Decays the weights of some elements by missed steps [first, last).
  KOKKOS_FORCEINLINE_FUNCTION void decay(tile_type& tile, const bool (&is_decaying)[Tile::elements],
                                         std::int64_t first, std::int64_t last) const {
    Compute weight[Tile::elements];
    for (int e = 0; e < Tile::elements; ++e) weight[e] = is_decaying[e] ? tile.weight[e] : Compute(1);
    for (std::int64_t j = first; j < last; ++j) {
      const update& now = schedule.missed_update(row_step, j);
      for (int e = 0; e < Tile::elements; ++e) now.decay_weight(weight[e]);
    }
    for (int e = 0; e < Tile::elements; ++e)
      if (is_decaying[e]) tile.weight[e] = weight[e];
  }

  /// Missed steps [first, last) of all elements.
  KOKKOS_FORCEINLINE_FUNCTION void run(tile_type& tile, std::int64_t first, std::int64_t last) const {
    const Compute gradient[Tile::elements] = {};
    for (std::int64_t j = first; j < last; ++j) {
      const update now = schedule.missed_update(row_step, j);
      step_tile(now, transforms, row, tile, gradient, count);
    }
  }

  /// How many missed steps from j on an element is dormant. Applies them to its state: one power of its
  /// factors replaces them.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t dormant_steps(std::int64_t j, tile_type& tile, int e,
                                                         bool& is_decaying) const {
    const update& options = schedule.question(row_step, j);
    auto element = tile.state(e);
    std::int64_t steps = 0;
    is_decaying = false;
    if constexpr (settles)
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
