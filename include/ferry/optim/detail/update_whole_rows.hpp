// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/optim/detail/catch_up_rows.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The number of sums over a row that an update needs, at least 1 so that arrays have an element.
template <class Update>
inline constexpr int measures_of = 1;
template <class Update>
  requires requires { Update::sums; }
inline constexpr int measures_of<Update> = Update::sums;

/// One optimizer step for rows that must be read as a whole before an element changes: for rules that measure
/// the row, for transforms that use the norm of its gradient or of its new weights, and for tables of 8-bit
/// rows, which need the range of the new weights. Each of these walks over the row once: it combines the
/// gradients and recomputes its inputs. A last walk updates. From the second walk on, the row comes from the
/// first level of cache.
///
/// Device mapping, by teams: the vector lanes of one thread share a row, one lane per packet, up to a warp.
/// Each team has one contiguous piece of the items. Host mapping: one iteration per item.
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

  static constexpr bool takes_teams = true;  ///< on a device, see schedule
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
    if (is_refused()) return;
    const row_segment rows = source.segment(item);
    if (rows.row >= 0 && transforms.takes(rows.row)) update_one(rows, thread_walk<Compute, Tile>{width});
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    if (is_refused()) return;
    const std::int64_t teams = team.league_size();
    const std::int64_t end = items * (team.league_rank() + 1) / teams;
    for (std::int64_t item = items * team.league_rank() / teams + team.team_rank(); item < end;
         item += team.team_size()) {
      const row_segment rows = source.segment(item);
      if (rows.row >= 0 && transforms.takes(rows.row))
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
  /// Separate arrays, so that a host's compiler loads and stores vectors of them.
  struct tile {
    Compute gradient[Tile::elements];
    Compute weight[Tile::elements];
    Compute field[field_room][Tile::elements];

    struct state_of_one {
      Compute field[field_room];
    };
    KOKKOS_FORCEINLINE_FUNCTION state_of_one state(int e) const {
      state_of_one of;
      of.field[0] = Compute(0);  // unused without fields
      for (int f = 0; f < Fields; ++f) of.field[f] = field[f][e];
      return of;
    }
  };

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const {
    return source.blocked() || (refusal != nullptr && refusal->nonfinite != 0);
  }

  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_one(const row_segment& rows, const Walk& walk) const {
    numbers with;
    with.rows = rows;
    with.now = schedule.of(rows.row);
    with.weights = table.row(rows.row, width);
    with.gradient_factor = Compute(1);
    with.weight_factor = Compute(1);
    with.row[0] = Compute(0);
    for (int f = 0; f < RowFields; ++f)
      with.row[f] = convert<Compute>(row_state[f][rows.row * row_state_stride]);
    if constexpr (Transforms::clip_norms != 0) {
      const auto squares =
          walk.template sums<1>([&](std::int64_t column, int count, Compute(&part)[1][Tile::elements]) {
            Compute gradient[Tile::elements];
            combine_segment<Tile, Duplicates>(gradient, source, rows, values, values_stride, column, count);
            for (int e = 0; e < live<Tile>(count); ++e) {
              const Compute g = transforms.before_norm(gradient[e]);
              part[0][e] = g * g;
            }
          });
      with.gradient_factor = transforms.gradient_factor(squares.value[0]);
    }
    if constexpr (measures) {
      with.total = walk.template sums<update::sums>(
          [&](std::int64_t column, int count, Compute(&part)[update::sums][Tile::elements]) {
            tile here;
            load(here, with, column, count);
            for (int e = 0; e < live<Tile>(count); ++e) {
              Compute own[update::sums];
              auto of = here.state(e);
              with.now.measure(here.weight[e], here.gradient[e], of.field, with.row, own);
              for (int s = 0; s < update::sums; ++s) part[s][e] = own[s];
            }
          });
      with.now.finalize_sums(with.total.value, static_cast<Compute>(width), with.row);
    }
    if constexpr (Transforms::norm_limits != 0) {
      const auto squares =
          walk.template sums<1>([&](std::int64_t column, int count, Compute(&part)[1][Tile::elements]) {
            tile here;
            stepped(here, with, column, count);
            for (int e = 0; e < live<Tile>(count); ++e) part[0][e] = here.weight[e] * here.weight[e];
          });
      with.weight_factor = transforms.weight_factor(squares.value[0]);
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
      to.template store<Tile>(here.weight, column, count);
      for (int f = 0; f < Fields; ++f)
        store_tile<Tile>(here.field[f], state[f] + rows.row * state_stride + column, count);
    });
    walk.once([&] {
      for (int f = 0; f < RowFields; ++f)
        row_state[f][rows.row * row_state_stride] = convert<State>(with.row[f]);
      if constexpr (Weights::needs_range) to.store_range();
    });
  }

  /// Gradient, weights and state of a tile, before the step.
  KOKKOS_FORCEINLINE_FUNCTION void load(tile& here, const numbers& with, std::int64_t column,
                                        int count) const {
    combine_segment<Tile, Duplicates>(here.gradient, source, with.rows, values, values_stride, column, count);
    for (int e = 0; e < live<Tile>(count); ++e)
      here.gradient[e] = transforms.gradient(here.gradient[e], with.gradient_factor);
    with.weights.template load<Tile>(here.weight, column, count);
    for (int f = 0; f < Fields; ++f)
      load_tile<Tile>(here.field[f], state[f] + with.rows.row * state_stride + column, count);
    if constexpr (Schedule::catches_up)
      catch_up_tile<Tile, Fields>(schedule, transforms, with.rows.row, here.weight, here.field, count);
  }

  /// Gradient, weights and state of a tile, after the step.
  KOKKOS_FORCEINLINE_FUNCTION void stepped(tile& here, const numbers& with, std::int64_t column,
                                           int count) const {
    load(here, with, column, count);
    if constexpr (!measures && lanes_in_tile<Tile, update, Compute>() != 0) {
      Compute before[Tile::elements];
      for (int e = 0; e < live<Tile>(count); ++e) before[e] = here.weight[e];
      apply_tile<Tile, Fields>(with.now, here.weight, here.gradient, here.field, count);
      for (int e = 0; e < live<Tile>(count); ++e) {
        here.weight[e] = transforms.changed(before[e], here.weight[e], with.rows.row);
        if constexpr (Transforms::norm_limits != 0) here.weight[e] *= with.weight_factor;
      }
    } else {
      for (int e = 0; e < live<Tile>(count); ++e) {
        const Compute before = here.weight[e];
        Compute weight = before;
        auto of = here.state(e);
        if constexpr (measures)
          with.now.apply(weight, here.gradient[e], of.field, with.total.value);
        else
          with.now.apply(weight, here.gradient[e], of.field);
        weight = transforms.changed(before, weight, with.rows.row);
        if constexpr (Transforms::norm_limits != 0) weight *= with.weight_factor;
        here.weight[e] = weight;
        for (int f = 0; f < Fields; ++f) here.field[f][e] = of.field[f];
      }
    }
  }
};

}  // namespace ferry::kernels
