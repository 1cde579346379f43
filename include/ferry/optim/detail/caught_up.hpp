// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/caught_up_rows.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/detail/update_job.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/runtime/detail/joint_writes.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// Computes the current rows of a table under step_count::catch_up, with all missed steps applied.
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
