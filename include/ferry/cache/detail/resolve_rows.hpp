// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cached_addresser.hpp>
#include <ferry/cache/detail/choose_slots.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

/// The work of cache::lru for a batch of rows.
namespace ferry::kernels {

/// A list of row numbers, of which -1 is none.
template <class Index>
struct rows_in_list {
  const Index* rows;
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row(std::int64_t position, bool) const { return rows[position]; }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The positions of a batch: of one list, or of a line for each group.
struct batch_lines {
  std::int64_t positions;  ///< of a line
  bool by_lines;
};

/// Throws invalid_argument for more positions than marks can tell apart.
void require_positions(const char* verb, std::int64_t positions);

/// Enqueues kernel(group) for each group: by a team of a device, by a thread of a host.
template <class Exec, class Kernel>
void launch_groups(const Exec& exec, const std::string& label, std::int64_t groups, const Kernel& kernel) {
  if constexpr (is_host_exec<Exec>) {
    launch(exec, label, groups, kernel);
  } else {
    const auto ready = teams_of<1024>(exec, groups, 1, kernel);
    [[maybe_unused]] const auto launching = execution_backend<Exec>::template lock_launch<decltype(ready)>();
    Kokkos::parallel_for(label, ready.policy, ready.functor);
  }
}

/// Enqueues that the rows of a batch get slots and are fetched, by at most `blocks` blocks. `slots`: for the
/// slot of each position, or null.
template <class Exec, class Source, class Slot>
void resolve_rows(launch_context<Exec>& call, row_cache& cache, const Source& source,
                  const batch_lines& batch, Slot* slots, bool spills, std::int64_t blocks) {
  require_positions(call.verb(), batch.positions);
  use_slots(call, cache, true);
  const cache_memory& memory = cache.memory;
  const std::string& label = call.label("lru", "choose");
  const std::string& fetch_label = call.label("lru", "fetch");  // all memory before the first launch
  launch(call.exec(), label, 1, kernels::clear_numbers<std::uint64_t>{memory.book.moving_count});
  launch_groups(call.exec(), label, memory.uses.groups,
                kernels::choose_slots<Source, Slot>{memory.book, memory.uses, source, slots, batch.positions,
                                                    cache.rows, fast_divisor(memory.uses.group_rows),
                                                    batch.by_lines, spills, call.report()});
  swap_listed_rows(call, cache, fetch_label, blocks);
}

/// Writes the rows of a batch's items that lie in slots to host memory.
template <ExecutionSpace Exec>
void write_through(launch_context<Exec>& call, const std::string& label, const cached_array& array,
                   const kernels::batch_locations& locations, std::int64_t items);

/// Writes what the kernels of a job have changed in slots to host memory.
template <class Exec, class Job>
void write_through(launch_context<Exec>& call, const row_cache& cache, const std::string& label,
                   const Job& job, std::int64_t items) {
  for (const cached_array& array : cache.arrays) {
    bool is_changed = cache.find(job.table) == &array;
    const auto look = [&](const auto& operand) { is_changed = is_changed || cache.find(operand) == &array; };
    job.for_each_row_array(look);
    if constexpr (Job::counts_rows) look(job.arrays.row_steps);
    if (is_changed) write_through(call, label, array, job.rows.locations, items);
  }
}

}  // namespace ferry::detail
