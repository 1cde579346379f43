// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/policy/step_count.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry::optim {

/// The state that `rule` needs for a sharded table, spread over the ranks as the table is: see make_state for
/// an ordinary table. Collective, see sharded_table. Throws what that throws, and peer_error if it
/// failed on another rank.
/// @{
template <MemorySpace Space, class StateType, class Rule, class T, class TableSpace, class Spread,
          class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const sharded_table<T, TableSpace, Spread>& table,
                              StepCount policy = {}) {
  using shard = decltype(make_state<Space, StateType>(rule, table.shard(0), policy));
  using made_type = sharded_state<typename shard::rule_type, StateType, Space>;
  auto note = ferry::detail::note_of<made_type, StepCount>("make_state", table);
  ferry::detail::collective call(table.comm(), ferry::detail::add_options(note, rule));
  return call.guarded([&] {
    const std::uint64_t number = call.next_number();
    made_type state(table, number);
    for (int r = call.first(); r < call.last(); ++r)
      state.set_shard(
          r, detail::make_state_on<Space, StateType>(table.comm().device(r), rule, table.shard(r), policy),
          table.sharding().global_rows(r, static_cast<std::int64_t>(table.rows()), call.ranks()));
    call.agree();
    return state;
  });
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
/// @}

}  // namespace ferry::optim
