// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/own_bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/search_rows.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/joint_writes.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

/// scatter, scatter_add and step of small batches in one launch, which looks all positions up in place of a
/// sort.
namespace ferry::detail {

/// True if such batches of these operands may be searched: a device's, for rows in its own memory that need
/// no plan for anything else. Every team reads all indices, so they must not come over the link.
template <class Path, class Duplicates, class Exec, class Job, class Named>
consteval bool may_search() {
  if constexpr (is_plan<Named> || is_host_exec<Exec> || !in_batch_order<Path> || Path::sorts ||
                Duplicates::forbids || in_any_order<Duplicates> || adjusts_values<Duplicates>)
    return false;
  else
    return Duplicates::needs_plan && !Job::needs_whole_rows && !Job::counts_rows &&
           std::is_same_v<typename decltype(Job::table)::memory_space, device_space> &&
           !std::is_same_v<typename Named::memory_space, mapped_space>;
}

/// The tile of the kernel that searches. Masked tiles take rows of any width. One kernel more for other rows
/// would cost every program compile time.
template <class Duplicates, class Job>
using searched_tile = std::conditional_t<Job::template takes_masks<Duplicates, kernels::found_rows>,
                                         kernels::masked_tile, kernels::packed_tile>;

/// True if this batch is small, and aligned so that the kernel can work in its tiles.
template <class Duplicates, class Exec, class Job, class Value, class Space>
bool is_searched(const Exec& exec, const Job& job, const array_ref<Value, Space>& values,
                 std::int64_t positions) {
  using tile = searched_tile<Duplicates, Job>;
  const auto& tuning = execution_backend<Exec>::tuning(exec);
  const std::int64_t most = std::min({tuning.positions_searched, std::int64_t{kernels::search_shape::most},
                                      kernels::search_shape::most_items * tuning.teams_that_check});
  return positions > 0 && positions <= most && job.table.width() != 0 &&
         static_cast<std::int64_t>(kernels::searched_batch::bytes(
             static_cast<int>(positions), kernels::search_shape::most_bytes_of_tile)) <=
             tuning.shared_bytes &&
         (tile::masked || job.template packs<Duplicates>(values));
}

/// The tiles of a kernel's rows, which lie in one array: fewer than of rows anywhere when all begin at
/// packets.
template <class Tile, class Kernel>
std::int64_t tiles_of_table(const Kernel& kernel) {
  const auto* const first = kernel.operation.target(0, 0);
  if (kernel.operation.stride % Tile::elements != 0) return kernel.tiles.divisor();
  return (kernel.width - kernels::masked_column<Tile>(0, first) + Tile::elements - 1) / Tile::elements;
}

template <class Duplicates, int Fields = -1, class Exec, class Job, class Named, class Value, class Space>
void launch_search(const Exec& exec, const std::string& label, const Job& job, const Named& named,
                   std::int64_t items, const array_ref<Value, Space>& values) {
  constexpr int fields = Fields < 0 ? Job::min_fields : Fields;
  if constexpr (fields < Job::max_fields)
    if (job.fields != fields)
      return launch_search<Duplicates, fields + 1>(exec, label, job, named, items, values);
  before_writing();
  using tile = searched_tile<Duplicates, Job>;
  auto rows = job.template kernel<Exec, Duplicates, tile, fields>(kernels::found_rows{}, items, values);
  if constexpr (tile::masked) rows.tiles = fast_divisor(tiles_of_table<tile>(rows));
  using kernel = kernels::search_rows<decltype(rows), Named>;
  const tool_kernel reported(exec, label);
  const kernel search{{},
                      rows,
                      named,
                      items,
                      rows.per_item(),
                      kernel::items_of_team(items, execution_backend<Exec>::tuning(exec).teams_that_check),
                      std::is_same_v<Space, device_space>};
  execution_backend<Exec>::launch_blocks(exec, label, search.teams(), kernel::team_size, search,
                                         search.bytes());
}

template <class Path, class Bounds, class Duplicates, class Exec, class Job, class Index, class IndexSpace,
          class Value, class Space>
ticket update_by_search(const Exec& exec, const char* verb, const Job& job,
                        const array_ref<Index, IndexSpace>& indices, const array_ref<Value, Space>& values,
                        const rollback& ends) {
  using plain = std::remove_const_t<Index>;
  const std::int64_t n = indices.rows();
  launch_context<Exec> call(exec, verb);
  // As for a larger batch, which is sorted.
  call.refuse_capture(
      "but larger batches are sorted, which a graph can't repeat; make the plan before the capture, or use duplicates::assume_unique");
  const std::string& label = call.label(Path::name);
  call.roll_back_by(ends);
  [[maybe_unused]] const auto traffic =
      count_transfer<Path>(call, values, job.table, bytes_of_rows(values, n));
  require_direct_reach(verb, exec, values);
  call.reads_from(values);
  job.for_each_array([&](const auto& array) {
    require_direct_reach(verb, exec, array);
    call.touches(array);
  });
  const auto ready = job.template prepare<false>(call, label, values);
  const plain* const list = indices_for_kernels(call, indices);
  if constexpr (kernels::is_own_bounds<Bounds>)
    call.changes().only(list, n, job.table.rows(), true);
  else
    call.changes().any_row();
  const kernels::index_rows<plain, Bounds> named{list, job.table.rows(),
                                                 Bounds::reports ? call.report() : report_writer{}};
  launch_search<Duplicates>(exec, label, ready, named, n, values);
  return call.finish(job.table, n, std::is_signed_v<plain>);
}

}  // namespace ferry::detail
