// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/transfer_statistics.hpp>

#include <ferry/runtime/detail/transfer_counters.hpp>

#include <atomic>
#include <cstddef>

namespace ferry {

std::vector<transfer_count> transfer_statistics() {
  using counters = detail::transfer_counters;
  std::vector<transfer_count> made;
  for (std::size_t from = 0; from < counters::places; ++from)
    for (std::size_t to = 0; to < counters::places; ++to)
      for (std::size_t path = 0; path < counters::places; ++path) {
        const detail::transfer_counter& one = counters::get().all[from][to][path];
        const std::uint64_t calls = one.calls.load(std::memory_order_relaxed);
        if (calls == 0) continue;
        made.push_back({counters::spaces[from], counters::spaces[to], counters::paths[path], calls,
                        one.bytes.load(std::memory_order_relaxed),
                        one.zero_copy_bytes.load(std::memory_order_relaxed)});
      }
  return made;
}

void reset_transfer_statistics() {
  for (auto& from : detail::transfer_counters::get().all)
    for (auto& to : from)
      for (auto& one : to) {
        one.calls.store(0, std::memory_order_relaxed);
        one.bytes.store(0, std::memory_order_relaxed);
        one.zero_copy_bytes.store(0, std::memory_order_relaxed);
      }
}

}  // namespace ferry
