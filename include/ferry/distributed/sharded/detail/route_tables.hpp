// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/each_table.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/detail/move_rows.hpp>
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
#include <utility>
#include <vector>

/// Routes of bags of several sharded tables. The bag of a position says of which table its row is.
namespace ferry::detail {

/// The row of each position among those of all tables, -1 for none, where kernels reach it.
struct joined_rows {
  std::shared_ptr<void> memory;
  const std::int64_t* data = nullptr;
};

/// Routes a batch by kernels, as route_by_kernels does for one table. `bags` for kernels of the call, whose
/// tables have been brought there; each table has as many bags as `batch` has rows. Waits.
template <class Bounds, class Exec, class Table, class Index, class Space, class Bags, class Batch>
joined_rows route_tables(launch_context<Exec>& call, const joined_tables<Table>& tables,
                         const array_ref<Index, Space>& indices, const Bags& bags, routed_lists& lists,
                         row_route<wire_space<Exec>>& route, const Batch& batch) {
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
               {indices_for_kernels(call, indices), 0, report},
               report,
               list_of_bags(bags, offsets, batch.rows() * ranges.tables, count, false, report),
               fast_divisor(batch.rows()),
               ranges,
               row_of});
  auto list = dense_rows<const std::int64_t, near_space<Exec>>(row_of, count, 1, "rows");
  list.rank = 1;
  route = route_by_kernels<bounds::skip>(call.verb(), exec, tables, list, lists, batch);
  if (reports) route.report = read_report<Exec>(report);
  route.signed_indices = std::is_signed_v<plain>;
  return rows;
}

/// The route of a batch, made by the host. `list` has the bags, `batch` of each table. Blocks.
template <class Bounds, class Exec, class Table, class Index, class Space, class Bags>
row_route<wire_space<Exec>> route_tables_on_host(const Exec& exec, const joined_tables<Table>& tables,
                                                 const array_ref<Index, Space>& indices, const Bags& list,
                                                 std::int64_t batch) {
  using plain = std::remove_const_t<Index>;
  row_route<wire_space<Exec>> route;
  std::vector<plain> room;
  const plain* const values = host_values(exec, indices, room);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(indices.rows()), -1);
  unsigned int raised = 0;
  const report_writer report{&route.report, &raised};
  for (std::int64_t p = 0; batch != 0 && p < indices.rows(); ++p) {  // without bags no position has a table
    const std::int64_t bag = list.bag_of(p);
    const auto table = static_cast<std::size_t>(bag / batch);
    const std::int64_t first = tables.first_row()[table], count = tables.first_row()[table + 1] - first;
    const std::int64_t row = count == 0 ? -1 : Bounds::resolve(values[p], count);
    if (row < 0 && (Bounds::reports || (count == 0 && std::is_same_v<Bounds, bounds::clamp>)))
      report.out_of_range(p, static_cast<std::uint64_t>(static_cast<std::int64_t>(values[p])), bag);
    rows[static_cast<std::size_t>(p)] = row < 0 ? -1 : first + row;
  }
  group_by_owner(route, tables, indices.rows(),
                 [&](std::int64_t p) { return rows[static_cast<std::size_t>(p)]; });
  route.signed_indices = std::is_signed_v<plain>;
  return route;
}

}  // namespace ferry::detail
