// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/optim/detail/catch_up_rows.hpp>
#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/row_tile.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// One optimizer step for rows that must be read as a whole before an element changes: for rules that measure
/// the row, for transforms that use the norm of its gradient or of its new weights, and for tables of 8-bit
/// rows, which need the range of the new weights. Each of these walks over the row once: it combines the
/// gradients and recomputes its inputs; the last one updates. Later walks find the row in the first level of
/// cache. If keeps_tiles, a row of one tile a lane stays in registers: on a device up to 128 elements.
///
/// Device: the vector lanes of a thread share a row; a team has a contiguous piece. Host: an iteration a row.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Weights, class State,
          class Schedule, class Transforms, int Fields, int RowFields>
struct update_whole_rows {
  using update = typename Schedule::update;
  static constexpr bool measures = requires { update::sums; };
  static constexpr int field_room = Fields == 0 ? 1 : Fields;
  static constexpr int row_room = RowFields == 0 ? 1 : RowFields;

  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::int64_t items;
  Weights table;
  State* state[field_room];
  std::int64_t state_stride;
  State* row_state[row_room];
  std::int64_t row_state_stride;
  Schedule schedule;
  Transforms transforms;
  const ferry::detail::index_report* refusal;

  /// Whether a tile of a row may stay in registers. Rules that only measure a row are faster with two walks
  /// and more rows under way (rowwise_adagrad, 131072 rows of 512 bytes, H100: 0.119 ms, not 0.137).
  static constexpr bool keeps_tiles =
      (Weights::needs_range || Transforms::clip_norms + Transforms::norm_limits != 0);
  static constexpr bool takes_teams = true;  ///< on a device, see schedule
  /// A row waits for memory several times: half of a multiprocessor's threads must fit, more of small rows.
  static constexpr int flat_teams = sizeof(Compute) > sizeof(float) ? 2 : keeps_tiles || Fields != 0 ? 4 : 5;
  [[nodiscard]] static std::int64_t per_item() { return 1; }
  /// Each walk over a row counts.
  [[nodiscard]] std::int64_t bytes_each() const {
    constexpr int walks = 1 + Transforms::clip_norms + Transforms::norm_limits + (measures ? 1 : 0) +
                          (Weights::needs_range ? 1 : 0);
    return width * static_cast<std::int64_t>(sizeof(Value) + (2 + 2 * Fields) * sizeof(Compute)) * walks;
  }
  /// Vector lanes per row.
  [[nodiscard]] int lanes() const { return lanes_for(width); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const bool refused = is_refused();
    const row_segment rows = source.segment(item);
    if (!refused && rows.row >= 0 && transforms.takes(rows.row))
      update_one(rows, thread_walk<Compute, Tile>{width});
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const bool refused = is_refused();
    const std::int64_t teams = team.league_size();
    const std::int64_t end = items * (team.league_rank() + 1) / teams;
    for (std::int64_t item = items * team.league_rank() / teams + team.team_rank(); item < end;
         item += team.team_size()) {
      const row_segment rows = source.segment(item);
      if (!refused && rows.row >= 0 && transforms.takes(rows.row))
        update_one(rows, lane_walk<Compute, Tile, Member>{team, width});
    }
  }

 private:
  struct numbers {
    row_segment rows;
    update now;
    typename Weights::row_view weights;
    Compute gradient_factor;
    Compute row[row_room];
    row_sums<Compute, measures_of<update>> total;
    Compute weight_factor;
  };
  using tile = row_tile<Compute, Tile, Fields>;

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const {
    return source.blocked() || (refusal != nullptr && refusal->nonfinite != 0);
  }

  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_one(const row_segment& rows, const Walk& walk) const {
    numbers with = numbers_of(rows);
    if constexpr (keeps_tiles)
      if (walk.in_one_tile()) return update_in_registers(with, walk);
    update_by_walks(with, walk);
  }

  KOKKOS_FORCEINLINE_FUNCTION numbers numbers_of(const row_segment& rows) const {
    numbers with;
    with.rows = rows;
    with.now = schedule.of(rows.row);
    with.weights = table.row(rows.row, width);
    with.gradient_factor = Compute(1);
    with.weight_factor = Compute(1);
    with.row[0] = Compute(0);
    for (int f = 0; f < RowFields; ++f)
      with.row[f] = convert<Compute>(row_state[f][rows.row * row_state_stride]);
    return with;
  }

  /// The steps of update_by_walks on a tile that stays where it is. Each lane has its own, or none.
  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_in_registers(numbers& with, const Walk& walk) const {
    tile here;
    walk.each([&](std::int64_t column, int count) { load_inputs(here, with, column, count); });
    if constexpr (Transforms::clip_norms != 0) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t, int count, auto& part, auto& inverse) {
            for (int e = 0; e < live<Tile>(count); ++e)
              part[0][e] = transforms.before_norm(here.gradient[e]) * inverse[0];
          });
      with.gradient_factor = transforms.gradient_factor(squares.total[0], squares.unit[0]);
    }
    walk.each([&](std::int64_t, int count) { transform(here, with, count); });
    if constexpr (measures)
      finalize(with, walk, [&](std::int64_t, int count, auto& part) { measure(here, with, count, part); });
    walk.each([&](std::int64_t, int count) { apply(here, with, count); });
    if constexpr (Transforms::norm_limits != 0) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t, int count, auto& part, auto& inverse) {
            for (int e = 0; e < live<Tile>(count); ++e) part[0][e] = here.weight[e] * inverse[0];
          });
      const Compute factor = transforms.weight_factor(squares.total[0], squares.unit[0]);
      walk.each([&](std::int64_t, int count) {
        for (int e = 0; e < live<Tile>(count); ++e) here.weight[e] *= factor;
      });
    }
    auto to = with.weights;
    if constexpr (Weights::needs_range) {
      const auto all = walk.range([&](std::int64_t, int count, float(&value)[Tile::elements]) {
        load_tile<Tile>(value, static_cast<const Compute*>(here.weight), count);
      });
      to = table.row_of_range(with.rows.row, width, all.min_val, all.max_val);
    }
    walk.each([&](std::int64_t column, int count) { store(here, with, to, column, count); });
    finish(with, to, walk);
  }

  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_by_walks(numbers& with, const Walk& walk) const {
    const row_segment& rows = with.rows;
    if constexpr (Transforms::clip_norms != 0) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t column, int count, auto& part, auto& inverse) {
            Compute gradient[Tile::elements];
            combine_segment<Tile, Duplicates>(gradient, source, rows, values, values_stride, column, count);
            for (int e = 0; e < live<Tile>(count); ++e)
              part[0][e] = transforms.before_norm(gradient[e]) * inverse[0];
          });
      with.gradient_factor = transforms.gradient_factor(squares.total[0], squares.unit[0]);
    }
    if constexpr (measures)
      finalize(with, walk, [&](std::int64_t column, int count, auto& part) {
        tile here;
        load(here, with, column, count);
        measure(here, with, count, part);
      });
    if constexpr (Transforms::norm_limits != 0) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t column, int count, auto& part, auto& inverse) {
            tile here;
            stepped(here, with, column, count);
            for (int e = 0; e < live<Tile>(count); ++e) part[0][e] = here.weight[e] * inverse[0];
          });
      with.weight_factor = transforms.weight_factor(squares.total[0], squares.unit[0]);
    }
    auto to = with.weights;
    if constexpr (Weights::needs_range) {
      const auto all = walk.range([&](std::int64_t column, int count, float(&value)[Tile::elements]) {
        tile here;
        stepped(here, with, column, count);
        load_tile<Tile>(value, static_cast<const Compute*>(here.weight), count);
      });
      to = table.row_of_range(rows.row, width, all.min_val, all.max_val);
    }
    walk.each([&](std::int64_t column, int count) {
      tile here;
      stepped(here, with, column, count);
      store(here, with, to, column, count);
    });
    finish(with, to, walk);
  }

  /// The sums of the row, and what the rule makes of them.
  template <class Walk, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION void finalize(numbers& with, const Walk& walk, const Measure& measure) const {
    const auto elements = static_cast<Compute>(width);
    if constexpr (sums_squares<update>) {
      const auto squares = squares_of<Tile, Compute, update::sums>(walk, measure);
      for (int s = 0; s < update::sums; ++s) with.total.value[s] = squares.total[s];
      with.now.finalize_sums(with.total.value, squares.unit, elements, with.row);
    } else {
      with.total = walk.template sums<update::sums>(measure);
      with.now.finalize_sums(with.total.value, elements, with.row);
    }
  }

  template <class Part>
  KOKKOS_FORCEINLINE_FUNCTION void measure(const tile& here, const numbers& with, int count,
                                           Part& part) const {
    for (int e = 0; e < live<Tile>(count); ++e) {
      Compute own[measures_of<update>];
      auto of = here.state(e);
      with.now.measure(here.weight[e], here.gradient[e], of.field, with.row, own);
      for (int s = 0; s < measures_of<update>; ++s) part[s][e] = own[s];
    }
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION void store(const tile& here, const numbers& with, const Row& to,
                                         std::int64_t column, int count) const {
    to.template store<Tile>(here.weight, column, count);
    for (int f = 0; f < Fields; ++f)
      store_tile<Tile>(here.field[f], state[f] + with.rows.row * state_stride + column, count);
  }

  /// What is stored once per row.
  template <class Row, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void finish(const numbers& with, const Row& to, const Walk& walk) const {
    walk.once([&] {
      for (int f = 0; f < RowFields; ++f)
        row_state[f][with.rows.row * row_state_stride] = convert<State>(with.row[f]);
      if constexpr (Weights::needs_range) to.store_range();
    });
  }

  /// The combined gradient, weights and state of a tile, before the step.
  KOKKOS_FORCEINLINE_FUNCTION void load_inputs(tile& here, const numbers& with, std::int64_t column,
                                               int count) const {
    combine_segment<Tile, Duplicates>(here.gradient, source, with.rows, values, values_stride, column, count);
    with.weights.template load<Tile>(here.weight, column, count);
    for (int f = 0; f < Fields; ++f)
      load_tile<Tile>(here.field[f], state[f] + with.rows.row * state_stride + column, count);
    if constexpr (Schedule::catches_up)
      catch_up_tile<Tile, Fields>(schedule, transforms, with.rows.row, here.weight, here.field, count);
  }
  KOKKOS_FORCEINLINE_FUNCTION void transform(tile& here, const numbers& with, int count) const {
    for (int e = 0; e < live<Tile>(count); ++e)
      here.gradient[e] = transforms.gradient(here.gradient[e], with.gradient_factor);
  }
  KOKKOS_FORCEINLINE_FUNCTION void load(tile& here, const numbers& with, std::int64_t column,
                                        int count) const {
    load_inputs(here, with, column, count);
    transform(here, with, count);
  }

  /// Gradient, weights and state of a tile, after the step.
  KOKKOS_FORCEINLINE_FUNCTION void stepped(tile& here, const numbers& with, std::int64_t column,
                                           int count) const {
    load(here, with, column, count);
    apply(here, with, count);
    if constexpr (Transforms::norm_limits != 0)
      for (int e = 0; e < live<Tile>(count); ++e) here.weight[e] *= with.weight_factor;
  }
  KOKKOS_FORCEINLINE_FUNCTION void apply(tile& here, const numbers& with, int count) const {
    if constexpr (!measures && lanes_in_tile<Tile, update, Compute>() != 0) {
      Compute before[Tile::elements];
      for (int e = 0; e < live<Tile>(count); ++e) before[e] = here.weight[e];
      apply_tile<Tile, Fields>(with.now, here.weight, here.gradient, here.field, count);
      for (int e = 0; e < live<Tile>(count); ++e)
        here.weight[e] = transforms.changed(before[e], here.weight[e], with.rows.row);
    } else {
      for (int e = 0; e < live<Tile>(count); ++e) {
        const Compute before = here.weight[e];
        Compute weight = before;
        auto of = here.state(e);
        if constexpr (measures)
          with.now.apply(weight, here.gradient[e], of.field, with.total.value);
        else
          with.now.apply(weight, here.gradient[e], of.field);
        here.weight[e] = transforms.changed(before, weight, with.rows.row);
        for (int f = 0; f < Fields; ++f) here.field[f][e] = of.field[f];
      }
    }
  }
};

}  // namespace ferry::kernels
