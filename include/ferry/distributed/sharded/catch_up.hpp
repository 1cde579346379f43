// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/step.hpp>
#include <ferry/optim/catch_up.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <type_traits>
#include <utility>

namespace ferry {

/// Under step_count::catch_up: applies to every row of a sharded table the steps that it missed, see catch_up
/// for an ordinary table. Collective, see sharded_table. Blocks until all ranks have written.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class... Policies>
  requires(
      detail::Fits<detail::catch_up_arguments, const Exec&, const Rule&, sharded_table<T, Space, Spread>&,
                   sharded_state<StateRule, StateType, StateSpace>&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  auto note = detail::note_of<chosen, Rule>("catch_up", table);
  detail::collective call(table.comm(), detail::add_state(detail::add_options(note, rule), state));
  return call.guarded([&]() -> ticket {
    state.require_made_for("catch_up", table);
    detail::require_optimizer("catch_up", rule, detail::whole_ref(table));
    call.agree();
    detail::write_jointly(call.first(), call.last(), [&](int r) {
      catch_up(detail::shard_instance(table.comm(), r, exec), detail::rule_of_shard(rule, table, state, r),
               table.shard(r), state.shard(r), Policies{}...)
          .join();
    });
    call.agree();
    call.close();
    return {};
  });
}

/// Under step_count::catch_up: out[p] = row indices[p] of a sharded table with all missed steps applied, see
/// gather for a rule, a table and its state. Collective, see sharded_table; all ranks pass the same type of
/// `out`. Errors are those of gather for a sharded table.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Out, class... Policies>
  requires(
      detail::Fits<detail::gather_arguments, const Exec&, const Rule&, const sharded_table<T, Space, Spread>&,
                   sharded_state<StateRule, StateType, StateSpace>&, const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule, const sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, Out&& out, Policies...) {
  using asked = detail::chosen_policies<Policies...>;
  using chosen = detail::local_policies<asked>;
  using path_policy = detail::shard_path_t<chosen>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using table_type = sharded_table<T, Space, Spread>;
  detail::require_sharded_verb<Exec, table_type, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  const auto sink = make_ref(out);
  using wired = typename decltype(sink)::value_type;  // rounded once, by the owner
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<wired, Rule>("gather", table);
  detail::add_options(note, rule);
  detail::collective call(
      table.comm(), detail::add_plan(detail::add_state(note, state), indices, detail::fetches_once<asked>));
  return call.guarded([&]() -> ticket {
    detail::require_sharded_batch<Exec, chosen>("gather", call, table, named, sink);
    detail::require_array_device("gather", exec, sink);
    state.require_made_for("gather", table);
    detail::require_optimizer("gather", rule, detail::whole_ref(table));
    const auto read = [&](const Exec& shard_exec, const table_type&, int rank, const auto& rows, auto& part) {
      gather(shard_exec, detail::rule_of_shard(rule, table, state, rank), table.shard(rank),
             state.shard(rank), rows, part, path_policy{}, bounds::unchecked{})
          .join();
    };
    using home = detail::payload_space<Exec, Space, typename decltype(sink)::memory_space>;
    detail::row_requests<Exec, table_type> requests(call, "gather", exec, table);
    constexpr bool is_planned = detail::is_sharded_plan<Indices>;  // then all ranks ask alike
    requests.template ask<bounds_policy>(
        named, is_planned ? detail::fetches_once<asked>
                          : detail::should_fetch_once<asked>(table, detail::list_of_batch(named)));
    const auto arrived = requests.template fetch<wired, home>(read, static_cast<std::int64_t>(table.width()));
    call.close();
    requests.place(arrived, sink);
    return requests.finish();
  });
}

/// Refuses quantized rows. Does not compile.
template <class Exec, class Rule, class Q, class Space, class ScaleSpace, class Spread, class... Rest>
ticket catch_up(const Exec&, const Rule&, sharded_quantized_table<Q, Space, ScaleSpace, Spread>&,
                const Rest&...) {
  static_assert(
      sizeof(Exec) == 0,
      "ferry: catch_up is for tables of floating-point numbers: the rows of a sharded_quantized_table lose what a step without a gradient changes.");
  return {};
}

}  // namespace ferry
