// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace_log.hpp"

#include <ferry/memory/detail/trace_listeners.hpp>

#include <atomic>

namespace ferry::detail {

/// The listeners of the process.
struct trace_home {
  std::atomic<unsigned> listeners{0};    ///< of trace_listener
  std::atomic<trace_log*> log{nullptr};  ///< never destroyed: other threads may be using it
  std::atomic<const range_annotator*> ranges{nullptr};

  trace_home();
  static trace_home& get();
  /// Ends the trace: by Kokkos::finalize, or else at exit, where the device may be gone.
  static void finish(bool wait);
};

}  // namespace ferry::detail
