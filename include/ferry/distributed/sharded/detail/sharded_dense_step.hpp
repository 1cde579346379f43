// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/coded_shard.hpp>
#include <ferry/distributed/sharded/detail/copy_lists.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// A step of all rows of a sharded table. Rows stay with their owners, and so do the gradients of ranks. One
/// thread that acts for the group brings those of the whole table into the order of each shard.
template <class Chosen, class ShardPolicies, class Exec, class Rule, class Table, class State, class Values>
struct sharded_dense_step : sharded_call<Exec, Table, every_row> {
  using base = sharded_call<Exec, Table, every_row>;
  using base::call, base::exec, base::table;
  using count_policy = typename Chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename Chosen::template get<nonfinite_category, nonfinite::keep>;
  using value = std::remove_const_t<typename Values::value_type>;
  using compute = step_type<typename Table::value_type, typename State::value_type, value>;
  using home = payload_space<Exec, typename Table::memory_space, typename Values::memory_space>;

  const Rule& rule;
  State& state;
  const Values& values;
  batch_findings scanned{};

  sharded_dense_step(const Exec& instance, const Rule& optimizer, Table& rows, State& moments,
                     const every_row& rows_of_table, const Values& grads, const call_note& note)
      : base("step", instance, rows, rows_of_table, false, note),
        rule(optimizer),
        state(moments),
        values(grads) {}

  void check() {
    require_rows_of_this_thread();
    require_apart(this->verb, call, table, values);
    require_array_device(this->verb, exec, values);
    require_sharded_step<count_policy, compute>(this->verb, call, rule, table, state);
  }
  void route() {
    if constexpr (nonfinite_policy::looks) scanned = scan_values(exec, values);
  }
  void agree() {
    if constexpr (nonfinite_policy::looks)
      this->exchange_findings(scanned);
    else
      call.agree();
  }
  [[nodiscard]] bool refuse() { return this->template refuse_gradients<nonfinite_policy>(state); }
  void move() {}
  void apply() {
    write_jointly(call.first(), call.last(), [&](int r) { update(r); });
    call.agree();  // no rank returns before all have written
  }

 private:
  void require_rows_of_this_thread() const {
    require_dense_rows(this->verb, values);
    const std::int64_t rows =
        call.is_whole() ? static_cast<std::int64_t>(table.rows()) : table.rows_of(call.rank());
    if (values.rows() == rows && values.width() == this->width()) return;
    const std::string part = call.is_whole() ? "" : joined("the shard of rank ", call.rank(), " of ");
    throw invalid_argument(joined("ferry::step: without indices ", values.describe(),
                                  " must have the extents [", rows, " x ", table.width(), "] of ", part,
                                  whole_ref(table).describe()));
  }
  void update(int rank) {
    const Exec shard_exec = this->instance(rank);
    if (!call.is_whole() && !lies_elsewhere(shard_exec, values)) {
      execution_backend<Exec>::fence(exec, "ferry::step");  // the shard's instance may be another one
      return step_shard(rank, shard_exec, values);
    }
    auto arrived = payload<value, home>(shard_exec, "gradients", table.rows_of(rank), this->width());
    if (call.is_whole())
      bring_rows(rank, arrived);
    else
      copy(exec, values, arrived).join();
    step_shard(rank, shard_exec, read_only(make_ref(arrived)));
  }
  /// The rows of a shard out of those of the whole table.
  template <class Rows>
  void bring_rows(int rank, Rows& arrived) const {
    const auto row_at =
        table.sharding().global_rows(rank, static_cast<std::int64_t>(table.rows()), call.ranks());
    const std::int64_t count = table.rows_of(rank);
    row_list<Exec> rows("rows", std::min(copied_at_once, count));
    for (std::int64_t begin = 0; begin < count; begin += copied_at_once) {
      const std::int64_t part_rows = std::min(copied_at_once, count - begin);
      for (std::int64_t i = 0; i < part_rows; ++i) rows.data()[i] = row_at(begin + i);
      auto part = arrived.rows_between(begin, begin + part_rows);
      gather_across(exec, values, rows.first(part_rows), part);
    }
  }
  template <class Grads>
  void step_shard(int rank, const Exec& shard_exec, const Grads& grads) {
    step_rows<ShardPolicies>(shard_exec, rule_of_shard(rule, table, state, rank),
                             step_access_of_shard(table, rank), state.shard(rank),
                             every_row{table.rows_of(rank)}, grads)
        .join();
  }
};

}  // namespace ferry::detail
