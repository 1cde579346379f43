// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/optim/detail/square_sums.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/quantized/detail/quantized_weights.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The tiles of a row during a step by a kernel that has advance<From, To>(tile, row, column, count). If
/// Keeps, a lane has one tile alone, which stays in registers and enters each phase once; else each walk
/// computes the tiles from memory.
template <class Tile, bool Keeps, auto Unread>
struct tiles_of_row {
  Tile current;

  /// Brings the tiles from one phase to a later one.
  template <auto From, auto To, class Kernel, class Row, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void enter(const Kernel& kernel, const Row& row, const Walk& walk) {
    if constexpr (Keeps)
      walk.for_each_tile([&](std::int64_t column, int count) {
        kernel.template advance<From, To>(current, row, column, count);
      });
  }
  /// The tile of a column, in a phase that it has entered.
  template <auto To, class Kernel, class Row>
  KOKKOS_FORCEINLINE_FUNCTION const Tile& at(const Kernel& kernel, const Row& row, std::int64_t column,
                                             int count) {
    if constexpr (!Keeps) kernel.template advance<Unread, To>(current, row, column, count);
    return current;
  }
};

/// One optimizer step for rows that must be read as a whole before an element changes: for rules that measure
/// the row, for transforms that use the norm of its gradient or of its new weights, and for tables of codes.
/// Each of these walks over the row once: it combines the gradients and recomputes its inputs, which later
/// walks find in the first level of cache; the last one updates. If keeps_tiles, a row of one tile a lane
/// stays in registers: on a device up to 128 elements, 256 in wide tiles. Device: the vector lanes of a
/// thread share a row. Rows of many gradients, often neighbours, lie in different teams. Host: an iteration a
/// row.
///
/// Operation: an update_row. RowState: the state_rows with an element for each row.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation,
          class RowState>
struct update_whole_rows {
  using update = typename Operation::update;
  using weights = typename Operation::weights;
  using transforms = decltype(Operation::transforms);
  static constexpr bool measures = ferry::detail::SumsRows<update>;
  static constexpr bool needs_scales = has_block_scales<weights>;
  static constexpr bool clips_norm = transforms::clip_norms != 0, limits_norm = transforms::norm_limits != 0;

  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::int64_t items;
  Operation operation;
  RowState row_state;

  /// True if a tile of a row may stay in registers. Rules that only measure a row are faster with two walks
  /// and more rows under way (rowwise_adagrad, 131072 rows of 512 bytes, H100: 0.119 ms, not 0.137).
  static constexpr bool keeps_tiles = needs_scales || clips_norm || limits_norm;
  static constexpr bool takes_teams = true;        ///< on a device, see schedule
  static constexpr bool teams_stay = keeps_tiles;  ///< for several small rows: to begin costs a tenth of one
  /// A row waits for memory several times: half of a multiprocessor's threads must fit, more of small rows.
  static constexpr int flat_teams = sizeof(Compute) > sizeof(float)         ? 2
                                    : keeps_tiles || Operation::fields != 0 ? 4
                                                                            : 5;
  [[nodiscard]] static std::int64_t per_item() { return 1; }
  /// Each walk over a row counts.
  [[nodiscard]] std::int64_t bytes_each() const {
    constexpr int walks =
        1 + (clips_norm ? 1 : 0) + (limits_norm ? 1 : 0) + (measures ? 1 : 0) + (needs_scales ? 1 : 0);
    return width * static_cast<std::int64_t>(sizeof(Value) + Operation::arrays * sizeof(Compute)) * walks;
  }
  /// True if each lane has one tile of more elements than lanes have at a time elsewhere.
  static constexpr bool has_wide_tiles = !Tile::host && Tile::elements > row_sum_order::lane_width;
  /// Vector lanes per row.
  [[nodiscard]] int lanes() const {
    if constexpr (has_wide_tiles)
      return lanes_for(width / (Tile::elements / row_sum_order::lane_width));
    else
      return lanes_for(width);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    if (!is_refused()) update_one(source.segment(item), thread_walk<Compute, Tile>{width});
  }

  /// One item, by a thread of a team.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void update_item(const Member& team, std::int64_t item) const {
    if (!is_refused()) update_one(source.segment_within(item), lane_walk<Compute, Tile, Member>(team, width));
  }

  /// See addressed_rows.hpp.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    operation.visit_rows(visit);
    row_state.visit_rows(visit);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    if (is_refused()) return;
    const std::int64_t count = source.items(items), size = team.team_size();
    const lane_walk<Compute, Tile, Member> walk(team, width);
    for (std::int64_t item = team.league_rank() * size + team.team_rank(); item < count;
         item += team.league_size() * size)
      update_one(source.segment_within(item), walk);
  }

 private:
  /// The number of sums over a row that the update needs, at least 1 so that arrays have an element.
  static consteval int sums_of_row() {
    if constexpr (measures)
      return update::sums;
    else
      return 1;
  }
  struct row_numbers {
    row_segment segment;
    update rule;
    typename weights::row_view weights_of_row;
    Compute gradient_factor;
    Compute fields[RowState::room];
    row_sums<Compute, sums_of_row()> total;
    Compute weight_factor;
  };
  struct tile : row_tile<Compute, Tile, Operation::fields> {
    Compute gradient[Tile::elements];
  };

  /// The states of a tile during a step, in order.
  enum class phase { unread, combined, loaded, transformed, stepped, scaled };

  using one_tile = tiles_of_row<tile, true, phase::unread>;
  using many_tiles = tiles_of_row<tile, false, phase::unread>;
  friend one_tile;
  friend many_tiles;

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const { return source.blocked() || operation.is_refused(); }

  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_one(const row_segment& segment, const Walk& walk) const {
    if (segment.row < 0 || !operation.transforms.takes(segment.row)) return;
    row_numbers row;
    row.segment = segment;
    row.rule = operation.schedule.at(operation.schedule.entry_of(segment.row));
    row.weights_of_row = operation.table.row(segment.row, width);
    row.gradient_factor = row.weight_factor = Compute(1);
    row.fields[0] = Compute(0);
    for (int f = 0; f < RowState::fields; ++f)
      row.fields[f] = convert<Compute>(*row_state.template row<single_tile>(f, segment.row));
    if constexpr (has_wide_tiles && Walk::has_lanes) {
      update_tiles<one_tile>(row, walk.over_one_tile());
    } else {
      if constexpr (keeps_tiles && !has_lone_blocks<weights, Tile>)
        if (walk.in_one_tile()) return update_tiles<one_tile>(row, walk.over_one_tile());
      update_tiles<many_tiles>(row, walk);
    }
  }

  /// The step of a row, on kept or recomputed tiles.
  template <class Tiles, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_tiles(row_numbers& row, const Walk& walk) const {
    Tiles tiles;
    tiles.template enter<phase::unread, phase::loaded>(*this, row, walk);
    if constexpr (clips_norm) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t column, int count, auto& part, auto& inverse) {
            const auto& inputs = tiles.template at<phase::combined>(*this, row, column, count);
            for (int e = 0; e < live<Tile>(count); ++e)
              part[0][e] = operation.transforms.before_norm(inputs.gradient[e]) * inverse[0];
          });
      row.gradient_factor = operation.transforms.gradient_factor(squares.total[0], squares.unit[0]);
    }
    tiles.template enter<phase::loaded, phase::transformed>(*this, row, walk);
    if constexpr (measures)
      finalize(row, walk, [&](std::int64_t column, int count, auto& part) {
        const auto& inputs = tiles.template at<phase::transformed>(*this, row, column, count);
        for (int e = 0; e < live<Tile>(count); ++e) {
          Compute terms[update::sums];
          auto element = inputs.state(e);
          row.rule.measure(inputs.weight[e], inputs.gradient[e], element.field, row.fields, terms);
          for (int s = 0; s < update::sums; ++s) part[s][e] = terms[s];
        }
      });
    tiles.template enter<phase::transformed, phase::stepped>(*this, row, walk);
    if constexpr (limits_norm) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t column, int count, auto& part, auto& inverse) {
            const auto& result = tiles.template at<phase::stepped>(*this, row, column, count);
            for (int e = 0; e < live<Tile>(count); ++e) part[0][e] = result.weight[e] * inverse[0];
          });
      row.weight_factor = operation.transforms.weight_factor(squares.total[0], squares.unit[0]);
    }
    tiles.template enter<phase::stepped, phase::scaled>(*this, row, walk);
    const auto tile_at = [&](std::int64_t column, int count) -> decltype(auto) {
      return tiles.template at<phase::scaled>(*this, row, column, count);
    };
    const auto store_in = [&](const auto& target, const tile& t, std::int64_t column, int count) {
      target.template store<Tile>(t.weight, column, count);
      operation.state.store(t, row.segment.row, column, count);
    };
    if constexpr (needs_scales)
      store_blocks<Tile>(operation.table, row.weights_of_row, width, walk, tile_at, store_in);
    else
      walk.for_each_tile([&](std::int64_t column, int count) {
        store_in(row.weights_of_row, tile_at(column, count), column, count);
      });
    walk.perform([&] {
      for (int f = 0; f < RowState::fields; ++f)
        *row_state.template row<single_tile>(f, row.segment.row) =
            convert<typename RowState::value_type>(row.fields[f]);
    });
  }

  /// Brings a tile from one phase to a later one.
  template <phase From, phase To>
  KOKKOS_FORCEINLINE_FUNCTION void advance(tile& t, const row_numbers& row, std::int64_t column,
                                           int count) const {
    constexpr auto enters = [](phase next) { return From < next && next <= To; };
    const std::int64_t number = row.segment.row;
    if constexpr (enters(phase::combined))
      combine_segment<Tile, Duplicates>(t.gradient, source, row.segment, values, values_stride, column,
                                        count);
    if constexpr (enters(phase::loaded)) {
      row.weights_of_row.template load<Tile>(t.weight, column, count);
      operation.state.load(t, number, column, count);
      operation.catch_up(t, number, count);
    }
    if constexpr (enters(phase::transformed))
      for (int e = 0; e < live<Tile>(count); ++e)
        t.gradient[e] = operation.transforms.gradient(t.gradient[e], row.gradient_factor);
    if constexpr (enters(phase::stepped) && !measures)
      step_tile(row.rule, operation.transforms, number, t, t.gradient, count);
    if constexpr (enters(phase::stepped) && measures)
      for (int e = 0; e < live<Tile>(count); ++e) {
        const Compute before = t.weight[e];
        auto element = t.state(e);
        row.rule.apply(t.weight[e], t.gradient[e], element.field, row.total.value);
        t.weight[e] = operation.transforms.changed(before, t.weight[e], number);
        t.set_state(e, element);
      }
    if constexpr (enters(phase::scaled) && limits_norm)
      for (int e = 0; e < live<Tile>(count); ++e) t.weight[e] *= row.weight_factor;
  }

  /// The sums of the row, and what the rule makes of them.
  template <class Walk, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION void finalize(row_numbers& row, const Walk& walk,
                                            const Measure& measure) const {
    const auto elements = static_cast<Compute>(width);
    if constexpr (ferry::detail::SumsSquares<update>) {
      const auto squares = squares_of<Tile, Compute, update::sums>(
          walk, [&](std::int64_t column, int count, auto& part, auto& inverse) {
            measure(column, count, part);
            for (int s = 0; s < update::sums; ++s)
              for (int e = 0; e < live<Tile>(count); ++e) part[s][e] *= inverse[s];
          });
      for (int s = 0; s < update::sums; ++s) row.total.value[s] = squares.total[s];
      row.rule.finalize_sums(row.total.value, squares.unit, elements, row.fields);
    } else {
      row.total = walk.template sums<update::sums>(measure);
      row.rule.finalize_sums(row.total.value, elements, row.fields);
    }
  }
};

}  // namespace ferry::kernels
