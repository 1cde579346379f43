// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/catch_up_rows.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Row k of `out` = the row of item k with its missed steps applied, see row_weights. If `in_place`, out is
/// the table itself, and the state is written as well.
///
/// Device mapping: one thread per (item, tile), row-major. Host mapping: one iteration per item.
template <class Compute, class Tile, class Source, class T, class State, class Schedule, class Transforms,
          class Out, int Fields>
struct caught_up_rows {
  static constexpr int room = Fields == 0 ? 1 : Fields;

  Source source;
  const T* table;
  std::int64_t stride;
  State* state[room];
  std::int64_t state_stride;
  Out out;
  std::int64_t width;
  detail::fast_divisor tiles;
  Schedule schedule;
  Transforms transforms;
  bool in_place;

  /// Of a host's item, without the steps that it missed.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(2 * (sizeof(Compute) + sizeof(State) * Fields));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (Tile::partial) {
      const std::int64_t row = source.row(i, true);
      if (row < 0) return;
      for (std::int64_t column = 0; column < width; column += Tile::elements)
        one(i, row, column,
            static_cast<int>(width - column < Tile::elements ? width - column : Tile::elements));
    } else {
      const std::int64_t item = tiles.quotient(i);
      const std::int64_t tile = i - item * tiles.divisor();
      const std::int64_t row = source.row(item, tile == 0);
      if (row >= 0) one(item, row, tile * Tile::elements, Tile::elements);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t item, std::int64_t row, std::int64_t column,
                                       int count) const {
    Compute weight[Tile::elements];
    Compute field[room][Tile::elements];
    load_tile<Tile>(weight, table + row * stride + column, count);
    for (int f = 0; f < Fields; ++f) load_tile<Tile>(field[f], state[f] + row * state_stride + column, count);
    catch_up_tile<Tile, Fields>(schedule, transforms, row, weight, field, count);
    out.template store<Tile>(weight, source.position(item), column, count);
    if (!in_place) return;
    for (int f = 0; f < Fields; ++f)
      store_tile<Tile>(field[f], state[f] + row * state_stride + column, count);
  }
};

/// Marks all rows as up to date with the step.
struct set_row_steps {
  std::uint32_t* row_steps;
  std::uint32_t step;

  static std::int64_t bytes_each() { return sizeof(std::uint32_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t row) const { row_steps[row] = step; }
};

}  // namespace ferry::kernels
