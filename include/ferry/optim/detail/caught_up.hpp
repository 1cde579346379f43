// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/catch_up_rows.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/detail/update_job.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/joint_writes.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// Computes the current rows of a table under step_count::catch_up, with all missed steps applied.
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

  /// Bytes of a host's item, without the steps that it missed.
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

namespace ferry::detail {

template <class Exec, class Rule, class State, class Transforms>
consteval void require_catch_up() {
  require_step_rule<Rule, typename State::rule_type>();
  static_assert(
      may_dereference<Exec, typename State::memory_space>() &&
          transform_spaces<Rule>::template reached_by<Exec>,
      "ferry: a host execution space can't dereference state or factors in device_space; pass an instance of the device's execution space.");
  static_assert(!RowOptimizer<optim::detail::rule_of<Rule>> && Transforms::allows_catch_up,
                "ferry: this rule, or one of its transforms, can't be combined with step_count::catch_up.");
}

/// Launches caught_up_rows on the verb's execution space or the host's. `in_place` updates the table, whose
/// rows are `out`; otherwise the rows alone are written to `out`.
template <class Rounding, class Compute, int Fields, class Rule, class Exec, class On, class T, class Space,
          class State, class Source, class Out, class OutSpace>
void launch_caught_up(launch_context<Exec>& call, const On& space_exec, const std::string& label,
                      const Rule& optimizer, const array_ref<T, Space>& table, State& state,
                      const Source& source, std::int64_t items, const array_ref<Out, OutSpace>& out,
                      bool in_place) {
  if constexpr (Fields < State::max_fields)
    if (state.fields() != Fields)
      return launch_caught_up<Rounding, Compute, Fields + 1>(call, space_exec, label, optimizer, table, state,
                                                             source, items, out, in_place);
  using job =
      update_job<std::remove_const_t<T>, Space, typename State::value_type, typename State::memory_space,
                 Rule, step_count::catch_up, rounding::nearest, nonfinite::keep>;
  using number = exact_number<On, Compute>;
  auto& log = state.clock()->updates;
  const std::int64_t step = state.clock()->steps;
  step_inputs inputs;
  inputs.take_updates(call, log.template history<Compute>(step));
  using update = typename std::remove_reference_t<decltype(log)>::template update<number>;
  const auto& rule = optim::detail::transforms_of<Rule>::rule_in(optimizer);
  const auto rest = log.rest(step, rule);
  const auto resting = rest.rule.template coefficients<number>(rest.first);
  const auto schedule = kernels::catch_up_schedule<update>::make(
      resting, resting, inputs.template updates_for<On, update>(), inputs.updates.first, rest.first,
      rest.steady, step + 1, state.clock()->row_steps.data());
  const auto transforms = job::template transforms_in<number>(optimizer);
  bool packable = in_packets<4>(table, out);
  for (int f = 0; f < Fields; ++f) packable = packable && in_packets<4>(state.field_ref(f));
  // The last step did not name a row with missed steps, so its random bits for that row are unused.
  const kernels::step_randomness randomness{state.clock()->seed, static_cast<std::uint64_t>(step),
                                            state.clock()->rows};
  const auto target = kernels::weights_rounded<Rounding::is_random>(out.data, out.row_stride(), randomness);
  const auto with_tile = [&]<class Tile>(Tile) {
    const std::int64_t tiles = Tile::host ? 1 : table.width() / Tile::elements;
    using value = typename State::value_type;
    kernels::caught_up_rows<number, Tile, Source, std::remove_const_t<T>, value,
                            kernels::catch_up_schedule<update>, std::remove_const_t<decltype(transforms)>,
                            std::remove_const_t<decltype(target)>, Fields>
        kernel{source,        table.data,          table.row_stride(), {},         0,       target,
               table.width(), fast_divisor(tiles), schedule,           transforms, in_place};
    for (int f = 0; f < Fields; ++f) {
      const auto field = state.field_ref(f);
      kernel.state[f] = field.data;
      kernel.state_stride = field.row_stride();
    }
    launch(space_exec, label, items * tiles, kernel);
  };
  if (in_place) before_writing();
  if constexpr (is_host_exec<On>)
    with_tile(kernels::host_tile{});
  else if (packable)
    with_tile(kernels::packed_tile{});
  else
    with_tile(kernels::single_tile{});
}

/// launch_caught_up in the type in which the steps were computed.
template <class Rounding, class Rule, class Exec, class On, class T, class Space, class State, class Source,
          class Out, class OutSpace>
void run_caught_up(launch_context<Exec>& call, const On& space_exec, const std::string& label,
                   const Rule& optimizer, const array_ref<T, Space>& table, State& state,
                   const Source& source, std::int64_t items, const array_ref<Out, OutSpace>& out,
                   bool in_place) {
  constexpr int least = optim::detail::rule_of<Rule>::min_fields;
  constexpr bool wide = std::is_same_v<step_type<T, typename State::value_type>, double>;
  if constexpr (!wide) {
    if (!state.clock()->updates.is_in_double())
      return launch_caught_up<Rounding, float, least>(call, space_exec, label, optimizer, table, state,
                                                      source, items, out, in_place);
  }
  launch_caught_up<Rounding, double, least>(call, space_exec, label, optimizer, table, state, source, items,
                                            out, in_place);
}

/// True if rows may have missed steps. Throws if the state counts by another policy or belongs to another
/// table.
template <class State, class Table>
bool may_be_behind(const char* verb, State& state, const Table& table) {
  const auto& clock = *state.clock();
  if (clock.row_policy.empty()) return false;  // no step under catch_up yet
  if (clock.row_policy != step_count::catch_up::name)
    throw invalid_argument(joined("ferry::", verb, ": the rows of '", table.label, "' count their steps by ",
                                  clock.row_policy, ", so there is nothing to catch up with"));
  require_made_for(verb, make_ref(state.clock()->row_steps), table, 1);
  for (int f = 0; f < state.fields(); ++f) require_made_for(verb, state.field_ref(f), table, table.width());
  return true;
}

/// The arrays that kernels read or write besides the table when they catch up.
template <class Exec, class Rule, class State, class Check>
void reach_state(const Rule& optimizer, State& state, const Check& check) {
  for (int f = 0; f < state.fields(); ++f) check(state.field_ref(f));
  check(make_ref(state.clock()->row_steps));
  std::apply([&](const auto&... transform) { (transform.for_each_array(check), ...); },
             optim::detail::transforms_of<Rule>::transforms_in(optimizer));
}

}  // namespace ferry::detail
