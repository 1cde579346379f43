// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/transfer_statistics.hpp>

#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/runtime/detail/count_moves.hpp>

#include <atomic>
#include <cstddef>

namespace ferry {

detail::transfer_counters& detail::transfer_counters::get() {
  static transfer_counters& counters = process_wide<transfer_counters>();
  return counters;
}

std::vector<transfer_count> transfer_statistics() {
  using counters = detail::transfer_counters;
  std::vector<transfer_count> counts;
  for (std::size_t source = 0; source < counters::places; ++source)
    for (std::size_t target = 0; target < counters::places; ++target)
      for (std::size_t path = 0; path < counters::places; ++path) {
        const detail::transfer_counter& counter = counters::get().counters[source][target][path];
        const std::uint64_t calls = counter.calls.load(std::memory_order_relaxed);
        if (calls == 0) continue;
        counts.push_back({counters::spaces[source], counters::spaces[target], counters::paths[path], calls,
                          counter.bytes.load(std::memory_order_relaxed),
                          counter.zero_copy_bytes.load(std::memory_order_relaxed)});
      }
  return counts;
}

void reset_transfer_statistics() {
  for (auto& by_target : detail::transfer_counters::get().counters)
    for (auto& by_path : by_target)
      for (auto& counter : by_path) {
        counter.calls.store(0, std::memory_order_relaxed);
        counter.bytes.store(0, std::memory_order_relaxed);
        counter.zero_copy_bytes.store(0, std::memory_order_relaxed);
      }
}

}  // namespace ferry
