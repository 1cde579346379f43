// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/trace_listeners.hpp>
#include <ferry/memory/detail/trace_span.hpp>

#include <string_view>

namespace ferry {

/// Work of the calling thread during its lifetime, as an event of the trace.
///
///   for (int epoch = 0; epoch < epochs; ++epoch) {
///     const ferry::trace_region region("epoch");
///     ...
///   }
///
/// Where the environment variable FERRY_TRACE names a file, ferry writes its verbs, transfers, kernels and
/// waits to it, in the Trace Event Format of Chrome and Perfetto; "%p" in the name becomes the number of the
/// process. The file is complete after Kokkos::finalize. Regions nest in a thread and may overlap between
/// threads. Without FERRY_TRACE, and without a profiler that takes ranges, a region costs one load.
class trace_region {
 public:
  /// `name` is copied.
  explicit trace_region(std::string_view name) : span_(name, {}, "region") {}

 private:
  detail::trace_span span_;
};

/// True if this program writes a trace now.
[[nodiscard]] inline bool is_tracing() noexcept {
  return (detail::trace_listeners() & detail::trace_file) != 0;
}

}  // namespace ferry
