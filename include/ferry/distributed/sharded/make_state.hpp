// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/coded_shard.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/policy/step_count.hpp>

#include <optional>

namespace ferry::detail {

/// make_state on a sharded table: State is a sharded_state.
template <class State, class Rule, class Table, class StepCount>
struct sharded_state_making : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::table;

  const Rule& rule;
  const StepCount& policy;
  std::optional<State> result{};

  sharded_state_making(const Rule& optimizer, Table& shards, const StepCount& count, const call_note& note)
      : base(shards, note), rule(optimizer), policy(count) {}

  void check() { result.emplace(table, call.next_number()); }
  void agree() {}
  void apply() {
    for (int r = call.first(); r < call.last(); ++r)
      result->set_shard(
          r,
          optim::detail::make_state_on<typename State::memory_space, typename State::value_type>(
              table.comm().device(r), rule, shard_of(table, r), policy),
          this->rows_of_shard(r));
    call.agree();
  }
};

/// The state of a rule for a sharded table of any kind.
template <class Space, class StateType, class Rule, class Table, class StepCount>
auto make_sharded_state(const Rule& rule, const Table& table, const StepCount& policy) {
  using shard = decltype(optim::detail::make_state_on<Space, StateType>(table.comm().device(0), rule,
                                                                        shard_of(table, 0), policy));
  using state = sharded_state<typename shard::rule_type, StateType, Space>;
  auto note = note_of<state, StepCount>("make_state", table);
  sharded_state_making<state, Rule, const Table, StepCount> verb(rule, table, policy,
                                                                 add_options(note, rule));
  return *verb.call.run(verb);
}

}  // namespace ferry::detail

namespace ferry::optim {

/// The state that `rule` needs for a sharded table, of numbers or quantized rows, spread over the ranks as
/// the table is: see make_state for an ordinary table. Collective, see sharded_table. Throws what that
/// throws, and peer_error if it failed on another rank.
/// @{
template <MemorySpace Space, class StateType, class Rule, class T, class TableSpace, class Spread,
          class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const sharded_table<T, TableSpace, Spread>& table,
                              StepCount policy = {}) {
  return ferry::detail::make_sharded_state<Space, StateType>(rule, table, policy);
}
template <MemorySpace Space, class Rule, class T, class TableSpace, class Spread,
          class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const sharded_table<T, TableSpace, Spread>& table,
                              StepCount policy = {}) {
  return make_state<Space, accumulation_t<T>>(rule, table, policy);
}
template <class Rule, class T, class TableSpace, class Spread, class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const sharded_table<T, TableSpace, Spread>& table,
                              StepCount policy = {}) {
  return make_state<TableSpace>(rule, table, policy);
}
template <MemorySpace Space, class StateType, class Rule, class Q, class TableSpace, class ScaleSpace,
          class Spread, class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule,
                              const sharded_quantized_table<Q, TableSpace, ScaleSpace, Spread>& table,
                              StepCount policy = {}) {
  return ferry::detail::make_sharded_state<Space, StateType>(rule, table, policy);
}
template <MemorySpace Space, class Rule, class Q, class TableSpace, class ScaleSpace, class Spread,
          class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule,
                              const sharded_quantized_table<Q, TableSpace, ScaleSpace, Spread>& table,
                              StepCount policy = {}) {
  return make_state<Space, float>(rule, table, policy);
}
template <class Rule, class Q, class TableSpace, class ScaleSpace, class Spread,
          class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule,
                              const sharded_quantized_table<Q, TableSpace, ScaleSpace, Spread>& table,
                              StepCount policy = {}) {
  return make_state<TableSpace>(rule, table, policy);
}
/// @}

}  // namespace ferry::optim
