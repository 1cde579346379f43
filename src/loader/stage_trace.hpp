// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../memory/trace_home.hpp"
#include "../memory/trace_text.hpp"

#include <ferry/loader/detail/slot.hpp>
#include <ferry/memory/detail/trace_span.hpp>

#include <chrono>
#include <cstdint>

/// The stages of a prefetcher as events of the trace: "ferry::loader::make", "transfer" and "wait".
namespace ferry::detail {

inline constexpr const char* loader_category = "loader";

/// Describes the batch in the event of a stage.
inline void note_batch(trace_span& event, std::int64_t epoch, std::int64_t batch, const slot& batch_slot) {
  if (!event.is_recording()) return;
  event.note("epoch", epoch);
  event.note("batch", batch);
  event.note("samples", static_cast<std::int64_t>(batch_slot.samples.size()));
}

/// The transfer of a batch, in a row of its own: the thread that sees its end does other things meanwhile.
inline void trace_transfer(const void* prefetcher, std::int64_t epoch, std::int64_t batch,
                           const slot& batch_slot, slot::clock::time_point begin,
                           slot::clock::time_point end) {
  using std::chrono::duration_cast, std::chrono::nanoseconds;
  trace_name name;
  name.append_escaped("ferry::loader::transfer");
  trace_arguments arguments;
  arguments.append_member("epoch", epoch);
  arguments.append_member("batch", batch);
  arguments.append_member("samples", static_cast<std::int64_t>(batch_slot.samples.size()));
  trace_home::get().log.load()->add(name, loader_category,
                                    duration_cast<nanoseconds>(begin.time_since_epoch()).count(),
                                    duration_cast<nanoseconds>(end.time_since_epoch()).count(), arguments,
                                    reinterpret_cast<std::uintptr_t>(prefetcher), "prefetcher, transfers");
}

}  // namespace ferry::detail
