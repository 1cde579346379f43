// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/gather_in_parts.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/values_of_batch.hpp>
#include <ferry/distributed/sharded/make_state.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/step.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// Refuses gradients that are not those of the rows of this thread's shards.
template <class Table, class Values>
void require_rows_of_thread(const collective& call, const Table& table, const Values& values) {
  require_dense_rows("step", values);
  const std::int64_t rows =
      call.is_whole() ? static_cast<std::int64_t>(table.rows()) : table.rows_of(call.rank());
  if (values.rows() == rows && values.width() == static_cast<std::int64_t>(table.width())) return;
  const std::string part = call.is_whole() ? "" : joined("the shard of rank ", call.rank(), " of ");
  throw invalid_argument(joined("ferry::step: without indices ", values.describe(),
                                " must have the extents [", rows, " x ", table.width(), "] of ", part,
                                whole_ref(table).describe()));
}

/// A step of all rows of a sharded table. Rows stay with their owners, and so do the gradients of ranks. One
/// thread that acts for the group brings those of the whole table into the order of each shard.
template <class Chosen, class Exec, class Rule, class Table, class State, class Values>
ticket step_all_shards(const Exec& exec, const Rule& rule, Table& table, State& state, const Values& values,
                       const call_note& note) {
  using count_policy = typename Chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename Chosen::template get<nonfinite_category, nonfinite::keep>;
  using policies_of_shard = chosen_policies<shard_step_policies<Chosen, duplicates::assume_unique>>;
  using value = std::remove_const_t<typename Values::value_type>;
  using home = payload_space<Exec, typename Table::memory_space, typename Values::memory_space>;
  collective call(table.comm(), note);
  return call.guarded([&]() -> ticket {
    ticket refused;
    require_rows_of_thread(call, table, values);
    require_apart("step", call, table, values);
    require_array_device("step", exec, values);
    require_sharded_step<count_policy,
                         step_type<typename Table::value_type, typename State::value_type, value>>(
        "step", call, rule, table, state);
    sharded_batch<Exec, Table> batch(call, "step", exec, table);
    if constexpr (nonfinite_policy::looks) {
      batch.meet_again(scan_values(exec, values));
      if (batch.template refuses_gradients<nonfinite_policy>(refused, state)) return refused;
    } else {
      call.agree();
    }
    const auto step_shard = [&](int r, const Exec& shard_exec, const auto& grads) {
      step_rows<policies_of_shard>(shard_exec, rule_of_shard(rule, table, state, r),
                                   step_access_of_shard(table, r), state.shard(r),
                                   every_row{table.rows_of(r)}, grads)
          .join();
    };
    write_jointly(call.first(), call.last(), [&](int r) {
      const Exec shard_exec = batch.instance(r);
      if (!call.is_whole() && !lies_elsewhere(shard_exec, values)) {
        execution_backend<Exec>::fence(exec, "ferry::step");  // the shard's instance may be another one
        return step_shard(r, shard_exec, values);
      }
      auto arrived = payload<value, home>(shard_exec, "gradients", table.rows_of(r), table.width());
      if (call.is_whole())
        gather_rows_of_shard(exec, values, table, r, arrived);
      else
        copy(exec, values, arrived).join();
      step_shard(r, shard_exec, read_only(make_ref(arrived)));
    });
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  });
}

}  // namespace ferry::detail

namespace ferry {

/// One optimizer step on the rows that the batches of all ranks name, as if they were one batch, by rank.
/// Arguments and policies are those of step on an ordinary table; indices may also be a sharded_plan, or a
/// row_plan for tables of as many rows. One more policy: reduce::in_order (default), or reduce::by_rank,
/// another order of sums that sends fewer rows. Arrays of transforms have one number for each row of the
/// whole table, and the rule must be the same on all ranks.
///
/// Rows of a sharded_quantized_table are decoded, updated and encoded as step does with a quantized_tensor,
/// and all ranks have set the same factor.
///
/// Collective, see sharded_table; a rank without gradients passes empty arrays, of the same element type, and
/// counts the step. Blocks until all ranks have written. ticket::wait() throws out_of_range on all ranks
/// if one has a bad index, naming the rank, and invalid_argument on all under duplicates::reject and
/// nonfinite::reject; nothing is then written anywhere, and the step does not count. Throws invalid_argument
/// for shapes or options that do not fit, and peer_error if that happened to another rank.
template <class Exec, class Rule, detail::ShardedRows Table, class StateRule, class StateType,
          class StateSpace, class Indices, class Grads, class... Policies>
  requires(detail::Fits<detail::indexed_step_arguments, const Exec&, const Rule&, Table&,
                        sharded_state<StateRule, StateType, StateSpace>&, const Indices&, const Grads&,
                        Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule, Table& table, sharded_state<StateRule, StateType, StateSpace>& state,
    const Indices& indices, const Grads& grads, Policies...) {
  using asked = detail::summing_policies<Policies...>;
  using chosen = typename asked::chosen;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_sharded_verb<Exec, Table, Indices, Grads, chosen, true, true>();
  detail::require_scales_of_shards<Exec, Table>();
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  const auto sources = detail::read_only(make_ref(grads));
  using types = detail::write_types<asked, Exec, Table, std::remove_const_t<decltype(sources)>>;
  using value = typename types::value;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  using policies_of_shard =
      detail::chosen_policies<detail::shard_step_policies<chosen, typename types::duplicates_policy>>;
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<chosen, typename asked::reduce, value, Rule>("step", table);
  detail::add_factor(detail::add_options(note, rule), table);
  detail::collective call(table.comm(), detail::add_plan(detail::add_state(note, state), indices));
  try {
    ticket refused;
    tensor<typename types::sent, typename types::payload_space> sums;
    detail::batch_findings scanned;
    detail::require_sharded_batch<Exec, chosen>("step", call, table, named, sources);
    detail::require_array_device("step", exec, sources);
    detail::require_sharded_step<count_policy,
                                 detail::step_type<typename Table::value_type, StateType, value>>(
        "step", call, rule, table, state);
    if constexpr (nonfinite_policy::looks) scanned = detail::scan_values(exec, sources);
    detail::sharded_batch<Exec, Table> batch(call, "step", exec, table);
    const auto owned = detail::values_for_owners<typename asked::reduce, typename types::bounds_policy>(
        batch, "step", exec, table, named, sources, sums);
    const auto received = batch.template exchange<types>(owned, scanned, nonfinite_policy::looks, refused);
    if (received.empty()) return refused;
    if (batch.template refuses_gradients<nonfinite_policy>(refused, state)) return refused;
    const auto write = [&](int r) {
      const auto& rows = received[static_cast<std::size_t>(r - call.first())];
      const Exec shard_exec = batch.instance(r);
      const detail::fence_on_exception<Exec> reading(shard_exec);  // memory of other ranks
      detail::step_rows<policies_of_shard, detail::values_of_ranks>(
          shard_exec, detail::rule_of_shard(rule, table, state, r), detail::step_access_of_shard(table, r),
          state.shard(r), rows.plan, rows.values)
          .join();
    };
    call.is_whole() ? detail::write_jointly(call.first(), call.last(), write) : write(call.rank());
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  } catch (...) {
    call.report_failure();
    throw;
  }
}

/// One optimizer step on all rows of a sharded table. Each rank passes the gradients of the rows that it
/// owns, in the order of its shard: what a reduce-scatter of a model's gradients leaves there. Of a
/// replicated table all ranks own all rows, and pass equal gradients. A thread that acts for the group as a
/// whole passes those of the whole table, in its order. Policies are those of a step of all rows of an
/// ordinary table.
///
/// Collective, see sharded_table. Blocks until all ranks have written. No gradient travels between ranks.
/// Bits and errors are those of the step with indices that names each row once.
template <class Exec, class Rule, detail::ShardedRows Table, class StateRule, class StateType,
          class StateSpace, class Grads, class... Policies>
  requires(detail::Fits<detail::dense_step_arguments, const Exec&, const Rule&, Table&,
                        sharded_state<StateRule, StateType, StateSpace>&, const Grads&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule, Table& table, sharded_state<StateRule, StateType, StateSpace>& state,
    const Grads& grads, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_dense_step<Exec, tensor<typename Table::value_type, typename Table::memory_space>, Grads,
                             Policies...>();
  detail::require_scales_of_shards<Exec, Table>();
  const auto sources = detail::read_only(make_ref(grads));
  using value = std::remove_const_t<typename decltype(sources)::value_type>;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  auto note = detail::note_of<chosen, value, Rule>("step of all rows", table);
  detail::add_factor(detail::add_options(note, rule), table);
  return detail::step_all_shards<chosen>(exec, rule, table, state, sources, detail::add_state(note, state));
}

/// Refuses the state of an ordinary table for a sharded one, and the other way round. Does not compile.
/// @{
template <class Exec, class Rule, detail::ShardedRows Table, class StateRule, class StateType,
          class StateSpace, class... Rest>
ticket step(const Exec&, const Rule&, Table&, optim::state<StateRule, StateType, StateSpace>&,
            const Rest&...) {
  static_assert(sizeof(Exec) == 0,
                "ferry: a sharded table is stepped with the state that optim::make_state made for it.");
  return {};
}
template <class Exec, class Rule, class T, class Space, class Extents, class StateRule, class StateType,
          class StateSpace, class... Rest>
ticket step(const Exec&, const Rule&, tensor<T, Space, Extents>&,
            sharded_state<StateRule, StateType, StateSpace>&, const Rest&...) {
  static_assert(sizeof(Exec) == 0,
                "ferry: an ordinary table is stepped with the state that optim::make_state made for it.");
  return {};
}
/// @}

}  // namespace ferry
