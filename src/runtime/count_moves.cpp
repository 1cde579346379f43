// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/count_moves.hpp>

#include <atomic>
#include <cstdint>

namespace ferry::detail {

void count_move(const move_places& places, std::int64_t bytes, bool zero_copy) {
  transfer_counter& counter =
      transfer_counters::get().counters[places.source][places.destination][places.path];
  const auto moved = static_cast<std::uint64_t>(bytes);
  counter.calls.fetch_add(1, std::memory_order_relaxed);
  counter.bytes.fetch_add(moved, std::memory_order_relaxed);
  if (zero_copy) counter.zero_copy_bytes.fetch_add(moved, std::memory_order_relaxed);
}

}  // namespace ferry::detail
