// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/transfer_counters.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

/// What verbs have moved from one memory space to another by one path. A gather moves from the table to the
/// batch; scatter, scatter_add and step move from the values or gradients to the table.
struct transfer_count {
  std::string_view from;    ///< name of the memory space; "other" for spaces of the user
  std::string_view to;      ///< likewise
  std::string_view path;    ///< "direct", "ordered", "staged", "cooperative"; "other" for path::peer
  std::uint64_t calls = 0;  ///< calls of verbs that moved something
  /// Bytes of the rows or elements that the calls named, in the type of the source: a row that is named
  /// twice counts twice, and so does a position that bounds::skip leaves out. Rows that a step reads and
  /// writes in place, and its state, are not counted.
  std::uint64_t bytes = 0;
  /// The part of `bytes` that kernels of a device read or wrote in host memory themselves, over the link.
  std::uint64_t zero_copy_bytes = 0;
};

/// What the verbs of this program have moved since the start or reset_transfer_statistics, without the pairs
/// of spaces that nothing moved between. Calls count when they return, also those that are still in flight;
/// a verb that was captured into a graph counts once. Counting costs a call three additions and is always
/// on. Thread-safe.
template <class...>  // compiled only where it is called
[[nodiscard]] std::vector<transfer_count> transfer_statistics() {
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

/// Sets all counts to zero. Calls in other threads may be counted in part.
inline void reset_transfer_statistics() {
  for (auto& from : detail::transfer_counters::get().all)
    for (auto& to : from)
      for (auto& one : to) {
        one.calls.store(0, std::memory_order_relaxed);
        one.bytes.store(0, std::memory_order_relaxed);
        one.zero_copy_bytes.store(0, std::memory_order_relaxed);
      }
}

}  // namespace ferry
