// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_read.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
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

namespace detail {

/// Reads the rows of a shard with all missed steps applied.
template <class Path, class Rule, class State>
struct caught_up_reader {
  const Rule& rule;
  State& state;

  template <class Call, class Rows, class Out>
  void operator()(const Call& call, int rank, const Rows& rows, const Out& out) const {
    gather(call.instance(rank), rule_of_shard(rule, call.table, state, rank),
           std::as_const(call.table).shard(rank), state.shard(rank), rows, out, Path{}, bounds::unchecked{})
        .join();
  }
};

template <class Choice, class Exec, class Table, class Named, class Out>
struct sharded_caught_up_gather : sharded_read<Choice, Exec, Table, Named, Out> {
  using base = sharded_read<Choice, Exec, Table, Named, Out>;
  using base::base;

  void check() {
    base::check();
    this->reader.state.require_made_for("gather", this->table);
    require_optimizer("gather", this->reader.rule, whole_ref(this->table));
  }
};

template <class Exec, class Rule, class Table, class State, class... Policies>
struct sharded_catch_up : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::table;

  const Exec& exec;
  const Rule& rule;
  State& state;

  sharded_catch_up(const Exec& instance, const Rule& optimizer, Table& shards, State& moments,
                   const call_note& note)
      : base(shards, note), exec(instance), rule(optimizer), state(moments) {}

  void check() {
    state.require_made_for("catch_up", table);
    require_optimizer("catch_up", rule, whole_ref(table));
  }
  void apply() {
    write_jointly(call.first(), call.last(), [&](int r) {
      catch_up(shard_instance(table.comm(), r, exec), rule_of_shard(rule, table, state, r), table.shard(r),
               state.shard(r), Policies{}...)
          .join();
    });
    call.agree();
  }
};

}  // namespace detail

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
  detail::sharded_catch_up<Exec, Rule, sharded_table<T, Space, Spread>,
                           sharded_state<StateRule, StateType, StateSpace>, Policies...>
      verb(exec, rule, table, state, detail::add_state(detail::add_options(note, rule), state));
  return verb.call.run(verb);
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
  using table_type = const sharded_table<T, Space, Spread>;
  using state_type = sharded_state<StateRule, StateType, StateSpace>;
  detail::require_sharded_verb<Exec, sharded_table<T, Space, Spread>, Indices, Out,
                               detail::local_policies<asked>, false>();
  detail::require_output<Out>();
  const auto sink = make_ref(out);
  using wired = typename decltype(sink)::value_type;  // rounded once, by the owner
  using reader =
      detail::caught_up_reader<detail::shard_path_t<detail::local_policies<asked>>, Rule, state_type>;
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<wired, Rule>("gather", table);
  detail::add_options(note, rule);
  detail::sharded_caught_up_gather<detail::read_choice<asked, wired, reader>, Exec, table_type,
                                   std::remove_cvref_t<decltype(named)>, std::remove_const_t<decltype(sink)>>
      verb("gather", exec, table, named, sink,
           detail::add_plan(detail::add_state(note, state), indices, detail::fetches_once<asked>),
           reader{rule, state});
  return verb.call.run(verb);
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
