// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/gather_sharded.hpp>
#include <ferry/distributed/sharded/detail/global_transform.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/step.hpp>
#include <ferry/optim/catch_up.hpp>

#include <type_traits>

namespace ferry {

/// Under step_count::catch_up: applies to every row of a sharded table the steps that it missed, see catch_up
/// for an ordinary table. Collective, see sharded_table. Blocks until all ranks have written.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, Policies... policies) {
  using chosen = detail::chosen_policies<Policies...>;
  auto note = detail::note_of<chosen, Rule>("catch_up", table);
  detail::collective call(table.comm(), detail::add_state(detail::add_options(note, rule), state));
  return call.guarded([&] {
    state.require_made_for("catch_up", table);
    detail::require_optimizer("catch_up", rule, detail::whole_ref(table));
    if (!call.is_whole()) call.agree();
    for (int r = call.first(); r < call.last(); ++r) {
      auto& shard = table.shard(r);
      catch_up(
          detail::shard_instance(table.comm(), r, exec),
          detail::rule_for_shard(rule, state.shard(r).clock()->rows, static_cast<std::int64_t>(shard.rows())),
          shard, state.shard(r), policies...)
          .join();
    }
    if (!call.is_whole()) call.agree();
    call.close();
    return ticket();
  });
}

/// Under step_count::catch_up: out[p] = row indices[p] of a sharded table with all missed steps applied, see
/// gather for a rule, a table and its state. Collective, see sharded_table; all ranks pass the same type of
/// `out`. Errors are those of gather for a sharded table.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule, const sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, Out&& out, Policies...) {
  using asked = detail::chosen_policies<Policies...>;
  using chosen = detail::local_policies<asked>;
  detail::require_sharded_verb<Exec, sharded_table<T, Space, Spread>, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  using path_policy = detail::shard_path_t<chosen>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto to = make_ref(out);
  using wired = typename decltype(to)::value_type;  // rounded once, by the owner
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<wired, Rule>("gather", table);
  detail::add_options(note, rule);
  detail::collective call(
      table.comm(), detail::add_plan(detail::add_state(note, state), indices, detail::fetches_once<asked>));
  return call.guarded([&] {
    detail::require_sharded_batch<Exec, chosen>("gather", call, table, named, to);
    detail::require_array_device("gather", exec, to);
    state.require_made_for("gather", table);
    detail::require_optimizer("gather", rule, detail::whole_ref(table));
    return detail::gather_by_routes<wired, bounds_policy>(
        call, exec, table, named, detail::should_fetch_once<asked>(table, named), to,
        [&](int rank, const auto& rows, const auto& into) {
          const auto& shard = table.shard(rank);
          auto& its_state = state.shard(rank);
          gather(
              detail::shard_instance(table.comm(), rank, exec),
              detail::rule_for_shard(rule, its_state.clock()->rows, static_cast<std::int64_t>(shard.rows())),
              shard, its_state, rows, into, path_policy{}, bounds::unchecked{})
              .join();
        });
  });
}

}  // namespace ferry
