// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// Elements of states by default.
template <class Table>
struct state_element {
  using type = accumulation_t<typename Table::value_type>;
};
template <class Table>
  requires(has_coded_rows<Table>)
struct state_element<Table> {
  using type = float;
};

/// The state of a rule for a sharded table of any kind.
template <class Space, class StateType, class Rule, class Table, class StepCount>
auto make_sharded_state(const Rule& rule, const Table& table, const StepCount& policy) {
  using shard = decltype(optim::detail::make_state_on<Space, StateType>(table.comm().device(0), rule,
                                                                        shard_of(table, 0), policy));
  using state = sharded_state<typename shard::rule_type, StateType, Space>;
  auto note = note_of<state, StepCount>("make_state", table);
  collective call(table.comm(), add_options(note, rule));
  return call.guarded([&] {
    state result(table, call.next_number());
    for (int r = call.first(); r < call.last(); ++r)
      result.set_shard(r,
                       optim::detail::make_state_on<Space, StateType>(table.comm().device(r), rule,
                                                                      shard_of(table, r), policy),
                       row_numbers(table, r));
    call.agree();
    call.close();
    return result;
  });
}

}  // namespace ferry::detail

namespace ferry::optim {

/// The state that `rule` needs for a sharded table, of numbers or quantized rows, spread over the ranks as
/// the table is: see make_state for an ordinary table. Collective, see sharded_table. Throws what that
/// throws, and peer_error if it failed on another rank.
/// @{
template <MemorySpace Space, class StateType, class Rule, ::ferry::detail::ShardedRows Table,
          class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const Table& table, StepCount policy = {}) {
  return ferry::detail::make_sharded_state<Space, StateType>(rule, table, policy);
}
template <MemorySpace Space, class Rule, ::ferry::detail::ShardedRows Table,
          class StepCount = step_count::global>
  requires(::ferry::detail::Fits<::ferry::detail::make_state_arguments, const Rule&, const Table&>)
[[nodiscard]] auto make_state(const Rule& rule, const Table& table, StepCount policy = {}) {
  return make_state<Space, typename ferry::detail::state_element<Table>::type>(rule, table, policy);
}
template <class Rule, ::ferry::detail::ShardedRows Table, class StepCount = step_count::global>
  requires(::ferry::detail::Fits<::ferry::detail::make_state_arguments, const Rule&, const Table&>)
[[nodiscard]] auto make_state(const Rule& rule, const Table& table, StepCount policy = {}) {
  return make_state<typename Table::memory_space>(rule, table, policy);
}
/// @}

}  // namespace ferry::optim

namespace ferry {

namespace detail {

/// Calls each(field of the shard, field of the whole table) for the fields of a state.
template <class Shard, class Whole, class Each>
void for_each_field(Shard& shard, Whole& whole, const Each& action) {
  for (int f = 0; f < whole.fields(); ++f) action(shard.field(f), whole.field(f));
  for (int f = 0; f < std::remove_const_t<Whole>::row_fields; ++f)
    action(shard.row_field_at(f), whole.row_field_at(f));
}

/// Throws unless the two states are for tables of the same extents and have the same fields.
template <class Shards, class Whole>
void require_like_states(Shards& shards, Whole& whole) {
  const auto unfit = [&] {
    throw invalid_argument(
        "ferry::copy: the states are not of the same rule and options, for tables of the same extents");
  };
  if (shards.acting_rank() >= 0)
    throw invalid_argument(
        "ferry::copy: states are copied by a thread that acts for the group as a whole, outside of communicator::run");
  for (int r = 0; r < shards.ranks(); ++r) {
    auto& shard = shards.shard(r);
    if (shard.fields() != whole.fields()) unfit();
    for (int f = 0; f < whole.fields(); ++f)
      if (shard.field_name(f) != whole.field_name(f)) unfit();
    for_each_field(shard, whole, [&](auto&, auto& field) {
      if (static_cast<std::int64_t>(field.rows()) != shards.rows()) unfit();
    });
  }
}

/// The rows of the whole table that a shard has.
template <class Exec, class Shard>
auto rows_of_shard(const Shard& shard, std::int64_t count) {
  tensor<std::int64_t, wire_space<Exec>> rows("rows", count);
  for (std::int64_t i = 0; i < count; ++i) rows.data()[i] = shard.clock()->rows(i);
  return rows;
}

template <class From, class To>
void copy_counts(const From& source, To& target) {
  target.steps = source.steps;
  target.skipped = source.skipped;
  target.seed = source.seed;
  target.row_policy = source.row_policy;
  target.updates.restore(source.updates.recorded());
}

}  // namespace detail

/// The state of an ordinary table = that of a sharded one, in the order of the row numbers, with the counters
/// of steps and rows. For files see io::checkpoint, which takes sharded states. By a thread that acts for the
/// group as a whole; blocks. Throws invalid_argument for states of other rules, options or extents.
template <class Exec, class Rule, class T, class Space, class ToSpace>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_state<Rule, T, Space>& source, optim::state<Rule, T, ToSpace>& target) {
  detail::require_like_states(source, target);
  static_cast<void>(source.steps_for("copy"));
  const bool counts = !source.shard(0).clock()->row_policy.empty();
  tensor<std::uint32_t, ToSpace> counters;
  const device home = target.fields() != 0 ? target.field(0).device() : detail::memory_home(exec);
  if (counts) counters = tensor<std::uint32_t, ToSpace>("row_steps", home, source.rows());
  for (int r = 0; r < source.ranks(); ++r) {
    const auto& shard = source.shard(r);
    const auto rows = detail::rows_of_shard<Exec>(shard, source.rows_of(r));
    const auto put = [&](const auto& part, auto& whole) { detail::scatter_across(exec, whole, rows, part); };
    detail::for_each_field(shard, target, put);
    if (counts) put(shard.row_steps(), counters);
  }
  detail::copy_counts(*source.shard(0).clock(), *target.clock());
  target.clock()->row_steps = std::move(counters);
  return {};
}

/// The state of a sharded table = that of an ordinary one, as above the other way round.
template <class Exec, class Rule, class T, class Space, class ToSpace>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const optim::state<Rule, T, Space>& source, sharded_state<Rule, T, ToSpace>& target) {
  detail::require_like_states(target, source);
  const bool counts = !source.clock()->row_policy.empty();
  for (int r = 0; r < target.ranks(); ++r) {
    auto& shard = target.shard(r);
    const auto rows = detail::rows_of_shard<Exec>(shard, target.rows_of(r));
    tensor<std::uint32_t, ToSpace> counters;
    if (counts) counters = tensor<std::uint32_t, ToSpace>("row_steps", target.device_of(r), rows.rows());
    const auto take = [&](auto& part, const auto& whole) { detail::gather_across(exec, whole, rows, part); };
    detail::for_each_field(shard, source, take);
    if (counts) take(counters, source.row_steps());
    detail::copy_counts(*source.clock(), *shard.clock());
    shard.clock()->row_steps = std::move(counters);
  }
  return {};
}

}  // namespace ferry
