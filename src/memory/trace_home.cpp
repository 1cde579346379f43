// SPDX-License-Identifier: Apache-2.0
#include "trace_home.hpp"

#include <ferry/memory/detail/process_wide.hpp>

#include <cstdlib>

namespace ferry::detail {

trace_home::trace_home() {
  const char* path = std::getenv("FERRY_TRACE");
  if (path == nullptr || *path == '\0') return;
  log = new trace_log(path);
  listeners = trace_file;
  std::atexit([] { finish(false); });
}

trace_home& trace_home::get() {
  static trace_home& listeners_of_process = process_wide<trace_home>();
  return listeners_of_process;
}

void trace_home::finish(bool wait) {
  trace_home& home = get();
  home.listeners.fetch_and(~unsigned{trace_file});
  if (trace_log* const log = home.log) log->close(wait);
}

unsigned trace_listeners() noexcept {
  static const std::atomic<unsigned>& now = trace_home::get().listeners;
  return now.load(std::memory_order_acquire);
}

void annotate_by(const range_annotator* annotator) {
  trace_home& home = trace_home::get();
  home.ranges = annotator;
  home.listeners.fetch_or(trace_ranges);
}

}  // namespace ferry::detail
