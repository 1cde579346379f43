// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/coded_shard.hpp>
#include <ferry/distributed/sharded/detail/copy_lists.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
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

/// The gradients of the rows of a shard out of those of the whole table.
template <class Exec, class Table, class Values, class Rows>
void bring_rows_of_shard(const Exec& exec, const Table& table, int rank, const Values& values,
                         Rows& arrived) {
  const auto row_at =
      table.sharding().global_rows(rank, static_cast<std::int64_t>(table.rows()), table.comm().size());
  const std::int64_t count = table.rows_of(rank);
  row_list<Exec> rows("rows", std::min(copied_at_once, count));
  for (std::int64_t begin = 0; begin < count; begin += copied_at_once) {
    const std::int64_t part_rows = std::min(copied_at_once, count - begin);
    for (std::int64_t i = 0; i < part_rows; ++i) rows.data()[i] = row_at(begin + i);
    auto part = arrived.rows_between(begin, begin + part_rows);
    gather_across(exec, values, rows.first(part_rows), part);
  }
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
        bring_rows_of_shard(exec, table, r, values, arrived);
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
