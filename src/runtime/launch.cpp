// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/launch.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/runtime/transfer_statistics.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::detail {

template <HostExecutionSpace Exec>
void launch(const Exec& exec, const std::string& label, host_loop loop) {
  if (loop.count <= 0) return;
  if (stays_in_caller(exec, loop.bytes)) {
    const tool_kernel region(exec, label);
    return loop(0);
  }
  require_own_kokkos(exec, label);
  loop.runs = std::min(loop.count, loop.thread_runs * concurrency_of(exec));
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, host_range<range>(exec, loop.runs), loop);
  execution_backend<Exec>::end_launch(exec, label);
}

#define FERRY_LAUNCH_ON(EXEC) template void launch<EXEC>(const EXEC&, const std::string&, host_loop);
FERRY_FOR_HOST_EXECUTION_SPACES(FERRY_LAUNCH_ON)
#undef FERRY_LAUNCH_ON

template <ExecutionSpace Exec>
void transfer(const Exec& exec, const char* label, void* target, std::string_view target_space,
              const void* source, std::string_view source_space, std::int64_t bytes) {
  if (bytes <= 0) return;
  const transfer_region region(target_space, target, source_space, source, static_cast<std::size_t>(bytes),
                               label);
  execution_backend<Exec>::copy_async(exec, label, target, source, static_cast<std::size_t>(bytes));
}

#define FERRY_TRANSFER_ON(EXEC)                                                                \
  template void transfer<EXEC>(const EXEC&, const char*, void*, std::string_view, const void*, \
                               std::string_view, std::int64_t);
FERRY_FOR_EXECUTION_SPACES(FERRY_TRANSFER_ON)
#undef FERRY_TRANSFER_ON

}  // namespace ferry::detail

namespace ferry {

detail::transfer_counters& detail::transfer_counters::get() {
  static transfer_counters& counters = process_wide<transfer_counters>();
  return counters;
}

std::vector<transfer_count> transfer_statistics() {
  using list = detail::transfer_counters;
  std::vector<transfer_count> counts;
  std::size_t number = 0;
  for (const auto& counter : list::get().counters) {
    const std::size_t path = number % list::names, pair = number / list::names;
    ++number;
    const std::uint64_t calls = counter.calls.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    counts.push_back({list::spaces[pair / list::names], list::spaces[pair % list::names], list::paths[path],
                      calls, counter.bytes.load(std::memory_order_relaxed),
                      counter.zero_copy_bytes.load(std::memory_order_relaxed)});
  }
  return counts;
}

void reset_transfer_statistics() {
  for (auto& counter : detail::transfer_counters::get().counters)
    for (auto* count : {&counter.calls, &counter.bytes, &counter.zero_copy_bytes})
      count->store(0, std::memory_order_relaxed);
}

}  // namespace ferry
