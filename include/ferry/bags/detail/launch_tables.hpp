// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/each_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Launches of the kernels of jobs on several tables, see each_table.hpp.
namespace ferry::detail {

/// Records of tables for kernels of the verb's execution space. The call keeps them.
template <class Exec, class Record>
const Record* records_for_kernels(launch_context<Exec>& call, std::vector<Record>&& records) {
  static_assert(is_host_exec<Exec> || std::is_trivially_copyable_v<Record>);
  const auto list = std::make_shared<std::vector<Record>>(std::move(records));
  call.hold(list);
  auto array = dense_rows<const Record, pageable_space>(list->data(), static_cast<std::int64_t>(list->size()),
                                                        1, "tables");
  array.rank = 1;
  return indices_for_kernels(call, array);
}

/// A batch of several tables: their ranges of row numbers, on the host and for kernels, their values and the
/// rows of their plan.
template <class Value, class Space, class Source>
struct batch_of_tables {
  using value_type = Value;

  const row_plan& plan;
  const Source& source;
  const std::vector<std::int64_t>& first_row;
  kernels::table_ranges ranges;
  const std::vector<array_ref<Value, Space>>& values;

  [[nodiscard]] auto source_of(std::size_t table) const {
    return kernels::rows_of_table<Source>{source, first_row[table]};
  }
  /// The kernels of all tables, on the host and for a launch; `make` returns that of a table.
  template <class Exec, class Make>
  auto kernels(launch_context<Exec>& call, const Make& make) const {
    using kernel = decltype(make(std::size_t{0}));
    std::vector<kernel> list;
    list.reserve(values.size());
    for (std::size_t t = 0; t < values.size(); ++t) list.push_back(make(t));
    const auto* records = records_for_kernels(call, std::vector<kernel>(list));
    return std::pair(std::move(list), records);
  }
};

/// launch_update for jobs of several tables. All have the fields that the options of their rule use.
template <class Duplicates, int Fields = -1, class Exec, class Job, class Batch, class Order>
void launch_tables(launch_context<Exec>& call, const update_labels& labels, const std::vector<Job>& jobs,
                   const Batch& batch, const Order& order) {
  constexpr int fields = Fields < 0 ? Job::min_fields : Fields;
  if constexpr (fields < Job::max_fields)
    if (jobs.front().fields != fields)
      return launch_tables<Duplicates, fields + 1>(call, labels, jobs, batch, order);
  const Exec& exec = call.exec();
  const std::int64_t items = batch.plan.positions();
  const auto update_by = [&]<class Tile>(Tile) {
    const auto list = batch.kernels(call, [&](std::size_t t) {
      return jobs[t].template kernel<Exec, Duplicates, Tile, fields>(batch.source_of(t), items,
                                                                     batch.values[t]);
    });
    using kernel = typename std::remove_cvref_t<decltype(list.first)>::value_type;
    const kernels::each_table<kernel> functor({list.second, batch.ranges, batch.source}, list.first.data(),
                                              items);
    const auto launch_all = [&](const auto&... count) {
      before_writing();
      launch(exec, labels.apply, order, items, functor.per_item(), functor);
      (launch(exec, labels.count, items, count), ...);
    };
    if constexpr (Job::counts_rows) {
      // Its records are taken before the rows change.
      const auto counters = batch.kernels(call, [&](std::size_t t) {
        return jobs[t].template counting_kernel<Exec, std::remove_const_t<typename Batch::value_type>>(
            batch.source_of(t));
      });
      using counter = typename std::remove_cvref_t<decltype(counters.first)>::value_type;
      launch_all(kernels::count_each_table<counter>{{counters.second, batch.ranges, batch.source}});
    } else {
      launch_all();
    }
  };
  if constexpr (is_host_exec<Exec>) {
    update_by(kernels::host_tile{});
  } else {
    bool packs = true;
    for (std::size_t t = 0; t < jobs.size(); ++t)
      packs = packs && jobs[t].template packs<Duplicates>(batch.values[t]);
    if (packs)
      update_by(kernels::packed_tile{});
    else
      update_by(kernels::single_tile{});
  }
}

// The steps of several tables and their launch, for tables of one memory and for the shards of a rank.

/// The step of each of several tables, before its launch and after.
template <class Call>
class table_steps {
 public:
  using job_type = typename Call::job_type;

  explicit table_steps(std::size_t tables) {
    calls_.reserve(tables);  // jobs refer to calls
    clocks_.reserve(tables);
  }

  /// Rule, table and state must outlive the steps. Throws as step_call.
  template <class Value, class Rule, class Table, class State>
  void add(const Rule& rule, const Table& table, State& state, std::type_identity<Value> value) {
    calls_.emplace_back("step_bags", rule, table, state, value);
    clocks_.push_back(state.clock());
  }
  template <class Exec>
  void take_counters(const Exec& exec) {
    for (auto& call : calls_) call.take_counters(exec);
  }
  [[nodiscard]] std::vector<job_type> jobs() const {
    std::vector<job_type> list;
    list.reserve(calls_.size());
    for (const auto& call : calls_) list.push_back(call.job());
    return list;
  }
  [[nodiscard]] rollback ends(bool skips) const { return optim::rollback_of(clocks_, skips); }
  template <class Value>
  void count() {
    for (auto& call : calls_) call.template count<Value>();
  }

 private:
  std::vector<Call> calls_;
  std::vector<std::shared_ptr<optim::step_counts>> clocks_;
};

/// The numbers that the rows of several tables have in a plan, and where their parts begin in the rows of the
/// values.
struct table_layout {
  std::vector<std::int64_t> first_row;  ///< one for each table, and the end
  std::vector<std::int64_t> first_column;
  kernels::table_ranges ranges;  ///< the first rows, for kernels
};

/// Enqueues the steps on the rows of a plan, which has positions. `values` are the rows that the positions
/// share. With Looks a value that is not finite spoils all steps.
template <class Sum, bool Looks, class Call, class Exec, class T, class Space, class Value, class ValueSpace>
void launch_steps(launch_context<Exec>& call, const std::string& label, const table_steps<Call>& steps,
                  const std::vector<array_ref<T, Space>>& tables, const row_plan& plan,
                  const table_layout& layout, const array_ref<Value, ValueSpace>& shared) {
  using job_type = typename Call::job_type;
  const plan_storage& store = *plan.storage();
  const auto values = values_for_kernels(call, label, shared);
  [[maybe_unused]] const auto traffic =
      count_transfer<path::direct>(call, values, tables.front(), bytes_of_rows(values, values.rows()));
  require_direct_reach(call.verb(), call.exec(), values);
  auto jobs = steps.jobs();
  std::vector<std::remove_cvref_t<decltype(values)>> parts;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    touch_arrays<path::direct>(call, jobs[t]);
    auto& part = parts.emplace_back(values);
    part.rank = 2;
    part.strides = {values.row_stride(), 1};
    part.extents = {values.rows(), tables[t].width()};
    part.data += layout.first_column[t];
  }
  step_inputs findings;
  if constexpr (Looks) findings.template look_for_nonfinite<false>(call, label, values);
  std::vector<job_type> ready;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    ready.push_back(jobs[t].template prepare<false>(call, label, parts[t]));
    ready.back().inputs.findings = findings.findings;
  }
  const auto labels = update_labels::of<job_type>(call, label);
  auto source = source_of_plan<Sum>(store, values.width());
  if constexpr (!is_host_exec<Exec>) {
    std::vector<kernels::column_range> columns;
    std::int64_t widest = 0, bits = 0;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      columns.push_back({layout.first_column[t], tables[t].width()});
      widest = std::max(widest, tables[t].width());
      bits |= layout.first_column[t] | tables[t].width();
    }
    using number = combining_number<Exec, Sum, sum_of<job_type, Exec, const Value>>;
    sum_long<number>(call, label, store, values,
                     kernels::table_columns{layout.ranges, records_for_kernels(call, std::move(columns))},
                     widest, bits % kernels::packed_tile::elements == 0, source);
  }
  launch_tables<Sum>(
      call, labels, ready,
      batch_of_tables<const Value, typename std::remove_cvref_t<decltype(values)>::memory_space,
                      decltype(source)>{plan, source, layout.first_row, layout.ranges, parts},
      plan_order<path::direct, Space>(plan));
}

}  // namespace ferry::detail
