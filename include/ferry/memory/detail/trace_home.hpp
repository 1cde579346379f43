// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/trace_log.hpp>
#include <ferry/memory/detail/until_finalize.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdlib>

namespace ferry::detail {

/// What a profiler offers for ranges of host code: begin and end nest in a thread.
struct range_annotator {
  void (*begin)(const char* name);
  void (*end)();
};

/// Who wants to know what ferry does besides Kokkos Tools: a trace where the variable FERRY_TRACE names a
/// file, and the annotator of a profiler where a backend has one. Without either, `listeners` is 0 and
/// everything that would be reported costs one load.
struct trace_home {
  static constexpr unsigned to_log = 1, to_ranges = 2;

  std::atomic<unsigned> listeners{0};
  std::atomic<trace_log*> log{nullptr};  ///< never destroyed: other threads may be using it
  std::atomic<const range_annotator*> ranges{nullptr};

  [[gnu::cold, gnu::noinline]] trace_home() {
    const char* path = std::getenv("FERRY_TRACE");
    if (path == nullptr || *path == '\0') return;
    log = new trace_log(path);
    listeners = to_log;
    std::atexit([] { finish(false); });
  }

  static trace_home& get() {
    static trace_home& one = process_wide<trace_home>();
    return one;
  }
  void annotate_by(const range_annotator* annotator) {
    ranges = annotator;
    listeners.fetch_or(to_ranges);
  }
  /// Ends the trace: by Kokkos::finalize, or else at exit, where the device may be gone.
  [[gnu::cold, gnu::noinline]] static void finish(bool wait) {
    trace_home& home = get();
    home.listeners.fetch_and(~to_log);
    if (trace_log* const log = home.log) log->close(wait);
  }
};

inline void trace_log::listen_for_finalize() {
  if (listens_ || !Kokkos::is_initialized()) return;
  listens_ = true;
  finalize_list::get().add([] { trace_home::finish(true); });
}

/// Who listens; a mask of trace_home's.
inline unsigned trace_listeners() noexcept {
  static const std::atomic<unsigned>& now = trace_home::get().listeners;
  return now.load(std::memory_order_acquire);
}

}  // namespace ferry::detail
