// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/count_moves.hpp>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace ferry::detail {

void count_move(trace_span& event, const move_places& places, std::int64_t bytes, bool zero_copy,
                std::string_view path, std::string_view source, std::string_view target) {
  transfer_counter& counter =
      transfer_counters::get().counters[places.source][places.destination][places.path];
  const auto moved = static_cast<std::uint64_t>(bytes);
  counter.calls.fetch_add(1, std::memory_order_relaxed);
  counter.bytes.fetch_add(moved, std::memory_order_relaxed);
  if (zero_copy) counter.zero_copy_bytes.fetch_add(moved, std::memory_order_relaxed);
  if (!event.is_recording()) return;
  event.note("path", path);
  event.note("from", source);
  event.note("to", target);
  event.note("bytes", bytes);
}

}  // namespace ferry::detail
