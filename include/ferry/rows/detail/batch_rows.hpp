// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/parallel.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

/// The rows that a batch names by indices or a plan.
namespace ferry::detail {

/// The rows that a batch names, for kernels of the verb's execution space, or OnHost of the host. Reports bad
/// indices. `read_once`: see indices_for_kernels.
template <class Bounds, bool OnHost = false, class Exec, class Batch>
auto rows_for_kernels(launch_context<Exec>& call, const Batch& batch,
                      [[maybe_unused]] std::int64_t table_rows, [[maybe_unused]] bool read_once = false) {
  if constexpr (is_every_row<Batch>) {
    return kernels::consecutive_rows{};
  } else if constexpr (is_plan<Batch> && OnHost) {
    return kernels::listed_rows{plan_array_for_host(call, batch.storage()->row_of, batch.positions())};
  } else if constexpr (is_plan<Batch>) {
    return kernels::listed_rows{batch.storage()->row_of};
  } else {
    using plain = std::remove_const_t<typename Batch::value_type>;
    report_writer report{};
    if constexpr (Bounds::reports) report = OnHost ? call.host_report() : call.report();
    if constexpr (OnHost)
      return kernels::index_rows<plain, Bounds>{indices_for_host(call, batch), table_rows, report};
    else
      return kernels::index_rows<plain, Bounds>{indices_for_kernels(call, batch, nullptr, read_once),
                                                table_rows, report};
  }
}

/// The plan of a batch, null for one of indices.
template <class Batch>
decltype(auto) plan_of([[maybe_unused]] const Batch& batch) {
  if constexpr (is_plan<Batch>)
    return (batch.storage());
  else
    return std::shared_ptr<plan_storage>();
}

/// True if the numbers that name the rows have a sign; for errors.
template <class Batch>
bool has_signed_indices([[maybe_unused]] const Batch& batch) {
  if constexpr (is_plan<Batch>)
    return batch.storage()->signed_indices;
  else
    return std::is_signed_v<std::remove_const_t<typename Batch::value_type>>;
}

/// The rows of a batch, -1 for none, found by the host's threads. Findings go to the ticket. Next to
/// slots the worker pool finds them: threads of a host execution space may spin for milliseconds after
/// a kernel, as OpenMP's do by default, and take the processors from the workers of the slots.
template <class Bounds, class Exec, class Batch>
auto rows_for_host(launch_context<Exec>& call, const Batch& batch, [[maybe_unused]] std::int64_t table_rows) {
  if constexpr (is_every_row<Batch>) {
    return kernels::consecutive_rows{};
  } else if constexpr (is_plan<Batch>) {
    return kernels::listed_rows{plan_array_for_host(call, batch.storage()->row_of, batch.positions())};
  } else {
    using plain = std::remove_const_t<typename Batch::value_type>;
    auto* const rows = call.template pinned<std::int64_t>(batch.rows());
    const std::string& label = call.label("staged", "resolve");
    const kernels::index_rows<plain, Bounds> source{indices_for_host(call, batch), table_rows,
                                                    call.host_report()};
    const kernels::resolve_indices<plain, Bounds> resolve{source, rows, nullptr, nullptr};
    if constexpr (is_host_exec<Exec>) {
      launch(call.exec(), label, batch.rows(), resolve);
      call.exec().fence(label);
    } else {
      const tool_kernel reported(Kokkos::DefaultHostExecutionSpace(), label);
      parallel(batch.rows(), 8192, [&resolve](std::int64_t first, std::int64_t count) {
        for (std::int64_t i = first; i < first + count; ++i) resolve(i);
      });
    }
    return kernels::listed_rows{rows};
  }
}

/// For rows without elements: nothing moves, but bad indices are still found; a plan has found its own.
template <class Bounds, class Exec, class Batch>
void look_at_bounds([[maybe_unused]] launch_context<Exec>& call, [[maybe_unused]] const Batch& indices,
                    [[maybe_unused]] std::int64_t table_rows) {
  if constexpr (Bounds::reports && !is_plan<Batch> && !is_every_row<Batch>) {
    using plain = std::remove_const_t<typename Batch::value_type>;
    if (indices.rows() == 0) return;
    const kernels::index_rows<plain, Bounds> source{indices_for_kernels(call, indices), table_rows,
                                                    call.report()};
    launch(call.exec(), call.label("validate"), indices.rows(),
           kernels::resolve_indices<plain, Bounds>{source, nullptr, nullptr, nullptr});
  }
}

/// The memory space that kernels of Exec are fastest on. Scratch comes from it.
template <class Exec>
using near_space =
    std::conditional_t<!is_host_exec<Exec> || device_is_host<Exec>, device_space, pageable_space>;

/// The row of each index of a verb made of verbs, or if one is bad -1 for all. Its verbs write to them with
/// bounds::skip: of a graph only the findings of this call are taken back after a launch, so findings of
/// theirs would refuse all later ones.
template <class Bounds, class Exec, class Index, class Space>
array_ref<const std::int64_t, near_space<Exec>> rows_to_write(launch_context<Exec>& call,
                                                              const array_ref<Index, Space>& indices,
                                                              std::int64_t table_rows) {
  using plain = std::remove_const_t<Index>;
  const std::int64_t n = indices.rows();
  auto* const rows = call.template scratch<std::int64_t>(n);
  const report_writer report = Bounds::reports ? call.report() : report_writer{};
  if (n != 0)
    launch(call.exec(), call.label("validate"), n,
           kernels::resolve_indices<plain, Bounds>{
               {indices_for_kernels(call, indices), table_rows, report}, rows, nullptr, nullptr});
  if constexpr (Bounds::reports)
    if (n != 0) launch(call.exec(), call.label("withhold"), n, kernels::withhold_rows{report.findings, rows});
  array_ref<const std::int64_t, near_space<Exec>> list;
  list.data = rows;
  list.rank = 1;
  list.extents = {n, 1};
  list.make_dense();
  list.label = "rows";
  return list;
}

}  // namespace ferry::detail
