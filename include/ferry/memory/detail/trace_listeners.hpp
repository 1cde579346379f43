// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::detail {

/// Listeners to the work of ferry besides Kokkos Tools: a trace, if the variable FERRY_TRACE names a
/// file, and the annotator of a profiler, if a backend has one.
enum trace_listener : unsigned { trace_file = 1, trace_ranges = 2 };

/// The present listeners. 0 without any: a report then costs the load of this mask.
[[nodiscard]] unsigned trace_listeners() noexcept;

/// A profiler's functions for ranges of host code: begin and end nest in a thread.
struct range_annotator {
  void (*begin)(const char* name);
  void (*end)();
};

/// Reports to a profiler, too.
void annotate_by(const range_annotator* annotator);

}  // namespace ferry::detail
