// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/each_table.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

/// Buckets of bags of several sharded tables. The bag of a position says of which table its row is.
namespace ferry::detail {

/// The row of each position among those of all tables, -1 for none, where kernels reach it.
struct joined_rows {
  std::shared_ptr<void> memory, passing;
  const std::int64_t* data = nullptr;
};

/// Puts a batch into buckets, as bucket_rows does for one table. `bags` for kernels of the call, whose tables
/// have been brought there; each table has as many bags as `batch` has rows. Waits.
template <class Bounds, class Exec, class Table, class Index, class Space, class Bags, class Batch>
joined_rows bucket_tables(launch_context<Exec>& call, const joined_tables<Table>& tables,
                          const array_ref<Index, Space>& indices, const Bags& bags, buckets& items,
                          const Batch& batch) {
  using plain = std::remove_const_t<Index>;
  constexpr bool clamps = std::is_same_v<Bounds, bounds::clamp>;
  const Exec& exec = call.exec();
  const std::int64_t count = indices.rows();
  const kernels::table_ranges ranges = tables.sharding().tables;
  joined_rows rows;
  rows.memory = engine::get(exec)->device_scratch(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) *
                                                  sizeof(std::int64_t));
  auto* const row_of = static_cast<std::int64_t*>(rows.memory.get());
  rows.data = row_of;
  const bool reports = Bounds::reports || (clamps && tables.lacks_rows());
  const report_writer report = reports ? call.report() : report_writer{};
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = bags.data;
  if (count > 0)
    launch(exec, call.label("tables", "resolve"), count,
           kernels::resolve_in_tables<plain, Bounds, offset_type<Bags>, clamps>{
               {indices_for_kernels(call, indices_near(exec, indices, rows.passing)), 0, report},
               report,
               list_of_bags(bags, offsets, batch.rows() * ranges.tables, count, false, report),
               fast_divisor(batch.rows()),
               ranges,
               row_of});
  items = bucket_rows<bounds::skip>(call.verb(), exec, tables, list_view<Exec>(row_of, count), batch);
  if (reports) items.report = read_report<Exec>(report);
  items.signed_indices = std::is_signed_v<plain>;
  return rows;
}

}  // namespace ferry::detail
