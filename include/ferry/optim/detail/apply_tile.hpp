// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
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

/// The fields of a state, of one kind: with an element for each weight, or for each row.
template <class State, int Fields>
struct state_rows {
  using value_type = State;
  static constexpr int fields = Fields;
  static constexpr int room = Fields == 0 ? 1 : Fields;

  State* data[room];
  std::int64_t stride;

  /// Arrays: those of a step, of which the first Fields are in use.
  template <class Arrays>
  static state_rows make(const Arrays& arrays) {
    state_rows rows{};
    for (int f = 0; f < Fields; ++f) {  // signed: nvcc warns about unsigned numbers below a constant zero
      rows.data[f] = arrays[static_cast<std::size_t>(f)].data;
      rows.stride = arrays[static_cast<std::size_t>(f)].row_stride();
    }
    return rows;
  }

  /// See addressed_rows.hpp.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    for (int f = 0; f < Fields; ++f) visit(data[f]);
  }
  template <class Tile>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION State* row(int f, std::int64_t row) const {
    return data[f] + row_offset<Tile>(row, stride);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(row_tile<Compute, Tile, Fields>& tile, std::int64_t row_number,
                                        std::int64_t column, int count) const {
    for (int f = 0; f < Fields; ++f) load_tile<Tile>(tile.field[f], row<Tile>(f, row_number) + column, count);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void store(const row_tile<Compute, Tile, Fields>& tile, std::int64_t row_number,
                                         std::int64_t column, int count) const {
    for (int f = 0; f < Fields; ++f)
      store_tile<Tile>(tile.field[f], row<Tile>(f, row_number) + column, count);
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

}  // namespace ferry::kernels
