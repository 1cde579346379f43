// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_bags.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/pooling.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// packed[k] = the part of the gradients of bag bags[k] that its table has, and zeros after it. One thread
/// per element, row-major.
template <class Value>
struct pack_parts {
  const std::int64_t* bags;
  tables_of_bags tables;  ///< one more column follows: the end
  const Value* grads;
  std::int64_t stride;
  Value* packed;
  detail::fast_divisor width;

  static std::int64_t bytes_each() { return 2 * sizeof(Value); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = width.quotient(i);
    const std::int64_t column = i - item * width.divisor();
    const std::int64_t bag = bags[item], table = tables.batch.quotient(bag);
    const std::int64_t first = tables.first_column[table];
    packed[i] = column < tables.first_column[table + 1] - first
                    ? grads[tables.row_of(bag) * stride + first + column]
                    : convert<Value>(0.0f);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The states of several sharded tables.
template <class States>
struct states_of_tables {
  using value_type = typename States::value_type::value_type;
  using state_type = typename States::value_type;

  States& states;

  [[nodiscard]] auto begin() const { return std::ranges::begin(states); }
  [[nodiscard]] auto end() const { return std::ranges::end(states); }
};

/// The gradients of bags of several tables for the owners of their rows: in place a bag has a row of the
/// batch, of which the owner reads the columns of the table; while they travel each bag's columns are a row.
template <class T, class Space, class Table>
struct table_values : batch_values<T, Space> {
  const std::int64_t* bag_of_item = nullptr;
  joined_tables<Table>* tables = nullptr;

  [[nodiscard]] const std::int64_t* keys() const { return bag_of_item; }
  template <class Exec, class Sink>
  void pack(const Exec& exec, const std::int64_t* list, std::int64_t count, Sink& sink) const {
    if (count == 0 || tables->widest() == 0) return;
    const auto parts = static_cast<std::int64_t>(tables->parts().size());
    launch_context<Exec> work(exec, "step_bags");
    tables->bring(work);
    const std::string& label = work.label("tables", "pack");
    const auto near_grads = values_for_kernels(work, label, this->rows);
    launch(exec, label, count * tables->widest(),
           kernels::pack_parts<T>{list,
                                  {tables->near_columns(), parts, fast_divisor(this->rows.rows())},
                                  near_grads.data,
                                  near_grads.row_stride(),
                                  sink.data(),
                                  fast_divisor(tables->widest())});
    execution_backend<Exec>::fence(exec, label);
    work.finish().drop();
  }
};

/// Refuses what the steps on the tables would, so that no shard is written before.
template <class Pooling, class StepCount, class Compute, class Exec, class Rule, class Table, class State,
          class Named, class Bags, class Grads, class Extra>
void require_steps_of_tables(const char* verb, const collective& call, const Exec& exec, const Rule& rule,
                             const joined_tables<Table>& table, State& state, const Named& named,
                             const Bags& bags, const Grads& grads, const Extra& extra) {
  const std::int64_t positions = named.rows();
  require_rank_one(verb, named);
  require_joined(verb, call, table, grads);
  const auto& parts = table.parts();
  for (std::size_t t = 0; t < parts.size(); ++t)
    for (std::size_t earlier = 0; earlier < t; ++earlier)
      if (parts[earlier] == parts[t])
        throw invalid_argument(joined("ferry::", verb, ": tables ", earlier, " and ", t,
                                      " of for_each_table are one, ", parts[t]->describe()));
  require_bags(verb, bags, positions, grads, static_cast<std::int64_t>(table.parts().size()));
  require_a_bag(verb, positions, grads);
  require_extra<Pooling>(verb, extra, positions, grads);
  require_states(verb, parts.size(), static_cast<std::size_t>(std::ranges::distance(state.states)));
  auto part = parts.begin();
  for (auto& moments : state) {
    Table& stepped = **part++;
    require_sharded_step<StepCount, Compute>(verb, call, rule, stepped, moments);
    for (int r = call.first(); r < call.last(); ++r) {
      require_direct_reach(verb, shard_instance(table.comm(), r, exec), make_ref(stepped.shard(r)));
      for (int f = 0; f < moments.shard(r).fields(); ++f)
        require_direct_reach(verb, shard_instance(table.comm(), r, exec), moments.shard(r).field_ref(f));
    }
  }
}

/// The steps of a rank's shards of several tables, by a plan of their rows, whose positions share the rows of
/// `values`.
template <class Chosen, bool Weighs, class Exec, class Rule, class Table, class State, class Value,
          class ValueSpace>
void step_shards_of_tables(const char* verb, const Exec& shard_exec, int rank, const Rule& rule,
                           const joined_tables<Table>& table, State& state, const row_plan& plan,
                           const array_ref<Value, ValueSpace>& values,
                           const std::vector<std::int64_t>& first_column) {
  using sum = std::conditional_t<Weighs, weighted_sum, duplicates::sum>;
  using element = typename Table::value_type;
  using space = typename Table::memory_space;
  using count_policy = typename Chosen::template get<step_count_category, step_count::global>;
  using state_type = typename State::state_type::shard_type;
  using rule_type = decltype(rule_of_shard(rule, *table.parts().front(), *state.begin(), rank));
  // Gradients have been scanned before.
  using call_type = step_call<
      step_policies<count_policy, typename Chosen::template get<rounding_category, rounding::nearest>,
                    nonfinite::keep>,
      rule_type, state_type, array_ref<element, space>>;
  call_type::template require_types<Exec, Value, sum>();
  std::vector<rule_type> rules;
  std::vector<array_ref<element, space>> shards;
  rules.reserve(table.parts().size());
  shards.reserve(table.parts().size());
  table_steps<call_type> steps(table.parts().size());
  auto part = table.parts().begin();
  for (auto& moments : state) {
    rules.push_back(rule_of_shard(rule, **part, moments, rank));
    shards.push_back(make_ref((*part++)->shard(rank)));
    steps.add(rules.back(), shards.back(), moments.shard(rank), std::type_identity<Value>{});
  }
  steps.take_counters(shard_exec);
  launch_context<Exec> work(shard_exec, verb);
  work.use(plan.storage());
  if (plan.positions() != 0) {
    std::vector<std::int64_t> first_row = table.first_local(rank);
    const std::int64_t* const near_rows = records_for_kernels(work, std::vector<std::int64_t>(first_row));
    launch_steps<sum, false>(
        work, work.label("tables"), steps, shards, plan,
        table_layout{
            std::move(first_row), first_column, {near_rows, static_cast<std::int64_t>(table.parts().size())}},
        values);
  }
  ticket launched = work.finish();
  steps.template count<Value>();
  launched.join();
}

}  // namespace ferry::detail
