// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/each_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/shared_values.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/joint_writes.hpp>
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

/// Columns [column, column + width) of an array of rows.
template <class T, class Space>
array_ref<T, Space> columns_of(const array_ref<T, Space>& rows, std::int64_t column, std::int64_t width) {
  auto part = rows;
  part.strides = {rows.row_stride(), 1};
  part.extents = {rows.rows(), width};
  part.rank = 2;
  part.data = rows.data + column;
  return part;
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

}  // namespace ferry::detail
