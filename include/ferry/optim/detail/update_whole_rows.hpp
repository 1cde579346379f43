// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/optim/detail/catch_up_rows.hpp>
#include <ferry/optim/detail/row_squares.hpp>
#include <ferry/optim/detail/row_tile.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/quantized/detail/quantized_weights.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// One optimizer step for rows that must be read as a whole before an element changes: for rules that measure
/// the row, for transforms that use the norm of its gradient or of its new weights, and for tables of codes.
/// Each of these walks over the row once: it combines the gradients and recomputes its inputs, which later
/// walks find in the first level of cache; the last one updates. If keeps_tiles, a row of one tile a lane
/// stays in registers: on a device up to 128 elements, 256 in wide tiles. Device: the vector lanes of a
/// thread share a row. Rows of many gradients, often neighbours, lie in different teams. Host: an iteration a
/// row.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Weights, class State,
          class Schedule, class Transforms, int Fields, int RowFields>
struct update_whole_rows {
  using update = typename Schedule::update;
  static constexpr bool measures = requires { update::sums; };
  static constexpr bool needs_scales = has_block_scales<Weights>;
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

  /// True if a tile of a row may stay in registers. Rules that only measure a row are faster with two walks
  /// and more rows under way (rowwise_adagrad, 131072 rows of 512 bytes, H100: 0.119 ms, not 0.137).
  static constexpr bool keeps_tiles = (needs_scales || Transforms::clip_norms + Transforms::norm_limits != 0);
  static constexpr bool takes_teams = true;        ///< on a device, see schedule
  static constexpr bool teams_stay = keeps_tiles;  ///< for several small rows: to begin costs a tenth of one
  /// A row waits for memory several times: half of a multiprocessor's threads must fit, more of small rows.
  static constexpr int flat_teams = sizeof(Compute) > sizeof(float) ? 2 : keeps_tiles || Fields != 0 ? 4 : 5;
  [[nodiscard]] static std::int64_t per_item() { return 1; }
  /// Each walk over a row counts.
  [[nodiscard]] std::int64_t bytes_each() const {
    constexpr int walks =
        1 + Transforms::clip_norms + Transforms::norm_limits + (measures ? 1 : 0) + (needs_scales ? 1 : 0);
    return width * static_cast<std::int64_t>(sizeof(Value) + (2 + 2 * Fields) * sizeof(Compute)) * walks;
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
    const bool refused = is_refused();
    const row_segment rows = source.segment(item);
    if (!refused && rows.row >= 0 && transforms.takes(rows.row))
      update_one(rows, thread_walk<Compute, Tile>{width});
  }

  /// One item, by a thread of a team.
  template <class Member>
  KOKKOS_FORCEINLINE_FUNCTION void update_item(const Member& team, std::int64_t item) const {
    if (is_refused()) return;
    const row_segment rows = source.segment_within(item);
    if (rows.row >= 0 && transforms.takes(rows.row))
      update_one(rows, lane_walk<Compute, Tile, Member>(team, width));
  }

  /// See addressed_rows.hpp.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    table.visit_rows(visit);
    for (int f = 0; f < Fields; ++f) visit(state[f]);
    for (int f = 0; f < RowFields; ++f) visit(row_state[f]);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    if (is_refused()) return;
    const std::int64_t count = source.items(items), size = team.team_size();
    const lane_walk<Compute, Tile, Member> walk(team, width);
    for (std::int64_t item = team.league_rank() * size + team.team_rank(); item < count;
         item += team.league_size() * size) {
      const row_segment rows = source.segment_within(item);
      if (rows.row >= 0 && transforms.takes(rows.row)) update_one(rows, walk);
    }
  }

 private:
  struct row_numbers {
    row_segment segment;
    update rule;
    typename Weights::row_view weights;
    Compute gradient_factor;
    Compute fields[row_room];
    row_sums<Compute, measures_of<update>> total;
    Compute weight_factor;
  };
  using tile = row_tile<Compute, Tile, Fields>;

  /// The states of a tile during a step, in order.
  enum class phase { unread, combined, loaded, transformed, stepped, scaled };

  using one_tile = kept_tile<tile>;
  using many_tiles = recomputed_tiles<tile, phase::unread>;
  friend one_tile;
  friend many_tiles;

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const {
    return source.blocked() || (refusal != nullptr && refusal->nonfinite != 0);
  }

  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_one(const row_segment& segment, const Walk& walk) const {
    row_numbers row = numbers_of(segment);
    if constexpr (has_wide_tiles) {
      update_tiles<one_tile>(row, walk.over_one_tile());
    } else {
      if constexpr (keeps_tiles && !has_lone_blocks<Weights, Tile>)
        if (walk.in_one_tile()) return update_tiles<one_tile>(row, walk.over_one_tile());
      update_tiles<many_tiles>(row, walk);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION row_numbers numbers_of(const row_segment& segment) const {
    row_numbers row;
    row.segment = segment;
    row.rule = schedule.of(segment.row);
    row.weights = table.row(segment.row, width);
    row.gradient_factor = Compute(1);
    row.weight_factor = Compute(1);
    row.fields[0] = Compute(0);
    for (int f = 0; f < RowFields; ++f)
      row.fields[f] = convert<Compute>(row_state[f][segment.row * row_state_stride]);
    return row;
  }

  /// The step of a row, on kept or recomputed tiles.
  template <class Tiles, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void update_tiles(row_numbers& row, const Walk& walk) const {
    Tiles tiles;
    tiles.template enter<phase::unread, phase::loaded>(*this, row, walk);
    if constexpr (Transforms::clip_norms != 0) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t column, int count, auto& part, auto& inverse) {
            const auto& inputs = tiles.template at<phase::combined>(*this, row, column, count);
            for (int e = 0; e < live<Tile>(count); ++e)
              part[0][e] = transforms.before_norm(inputs.gradient[e]) * inverse[0];
          });
      row.gradient_factor = transforms.gradient_factor(squares.total[0], squares.unit[0]);
    }
    tiles.template enter<phase::loaded, phase::transformed>(*this, row, walk);
    if constexpr (measures)
      finalize(row, walk, [&](std::int64_t column, int count, auto& part) {
        measure(tiles.template at<phase::transformed>(*this, row, column, count), row, count, part);
      });
    tiles.template enter<phase::transformed, phase::stepped>(*this, row, walk);
    if constexpr (Transforms::norm_limits != 0) {
      const auto squares =
          squares_of<Tile, Compute, 1>(walk, [&](std::int64_t column, int count, auto& part, auto& inverse) {
            const auto& result = tiles.template at<phase::stepped>(*this, row, column, count);
            for (int e = 0; e < live<Tile>(count); ++e) part[0][e] = result.weight[e] * inverse[0];
          });
      row.weight_factor = transforms.weight_factor(squares.total[0], squares.unit[0]);
    }
    tiles.template enter<phase::stepped, phase::scaled>(*this, row, walk);
    [[maybe_unused]] const auto value_of = [&](std::int64_t column, int count, auto& value) {
      const auto& result = tiles.template at<phase::scaled>(*this, row, column, count);
      load_tile<Tile>(value, static_cast<const Compute*>(result.weight), count);
    };
    const auto tile_at = [&](std::int64_t column, int count) -> decltype(auto) {
      return tiles.template at<phase::scaled>(*this, row, column, count);
    };
    const auto store_in = [&](const auto& target, const tile& t, std::int64_t column, int count) {
      store(t, row, target, column, count);
    };
    if constexpr (needs_scales)
      store_blocks<Tile>(table, row.weights, width, walk, tile_at, store_in);
    else
      walk.for_each_tile([&](std::int64_t column, int count) {
        store_in(row.weights, tile_at(column, count), column, count);
      });
    walk.perform([&] {
      for (int f = 0; f < RowFields; ++f)
        row_state[f][row.segment.row * row_state_stride] = convert<State>(row.fields[f]);
    });
  }

  /// Brings a tile from one phase to a later one.
  template <phase From, phase To>
  KOKKOS_FORCEINLINE_FUNCTION void advance(tile& t, const row_numbers& row, std::int64_t column,
                                           int count) const {
    constexpr auto enters = [](phase next) { return From < next && next <= To; };
    if constexpr (enters(phase::combined))
      combine_segment<Tile, Duplicates>(t.gradient, source, row.segment, values, values_stride, column,
                                        count);
    if constexpr (enters(phase::loaded)) load(t, row, column, count);
    if constexpr (enters(phase::transformed))
      for (int e = 0; e < live<Tile>(count); ++e)
        t.gradient[e] = transforms.gradient(t.gradient[e], row.gradient_factor);
    if constexpr (enters(phase::stepped)) apply(t, row, count);
    if constexpr (enters(phase::scaled) && Transforms::norm_limits != 0)
      for (int e = 0; e < live<Tile>(count); ++e) t.weight[e] *= row.weight_factor;
  }

  /// The sums of the row, and what the rule makes of them.
  template <class Walk, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION void finalize(row_numbers& row, const Walk& walk,
                                            const Measure& measure) const {
    const auto elements = static_cast<Compute>(width);
    if constexpr (sums_squares<update>) {
      const auto squares = squares_of<Tile, Compute, update::sums>(walk, measure);
      for (int s = 0; s < update::sums; ++s) row.total.value[s] = squares.total[s];
      row.rule.finalize_sums(row.total.value, squares.unit, elements, row.fields);
    } else {
      row.total = walk.template sums<update::sums>(measure);
      row.rule.finalize_sums(row.total.value, elements, row.fields);
    }
  }

  template <class Part>
  KOKKOS_FORCEINLINE_FUNCTION void measure(const tile& t, const row_numbers& row, int count,
                                           Part& part) const {
    for (int e = 0; e < live<Tile>(count); ++e) {
      Compute terms[measures_of<update>];
      auto element = t.state(e);
      row.rule.measure(t.weight[e], t.gradient[e], element.field, row.fields, terms);
      for (int s = 0; s < measures_of<update>; ++s) part[s][e] = terms[s];
    }
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION void store(const tile& t, const row_numbers& row, const Row& target,
                                         std::int64_t column, int count) const {
    target.template store<Tile>(t.weight, column, count);
    for (int f = 0; f < Fields; ++f)
      store_tile<Tile>(t.field[f], state[f] + row.segment.row * state_stride + column, count);
  }

  /// Weights and state before the step.
  KOKKOS_FORCEINLINE_FUNCTION void load(tile& t, const row_numbers& row, std::int64_t column,
                                        int count) const {
    row.weights.template load<Tile>(t.weight, column, count);
    for (int f = 0; f < Fields; ++f)
      load_tile<Tile>(t.field[f], state[f] + row.segment.row * state_stride + column, count);
    if constexpr (Schedule::catches_up)
      catch_up_tile<Tile, Fields>(schedule, transforms, row.segment.row, t.weight, t.field, count);
  }

  KOKKOS_FORCEINLINE_FUNCTION void apply(tile& t, const row_numbers& row, int count) const {
    if constexpr (!measures) {
      step_tile<Tile, Fields>(row.rule, transforms, row.segment.row, t.weight, t.gradient, t.field, count);
    } else {
      for (int e = 0; e < live<Tile>(count); ++e) {
        const Compute before = t.weight[e];
        Compute weight = before;
        auto element = t.state(e);
        row.rule.apply(weight, t.gradient[e], element.field, row.total.value);
        t.weight[e] = transforms.changed(before, weight, row.segment.row);
        for (int f = 0; f < Fields; ++f) t.field[f][e] = element.field[f];
      }
    }
  }
};

}  // namespace ferry::kernels
