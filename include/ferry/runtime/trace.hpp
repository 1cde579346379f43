// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>

#include <string_view>

namespace ferry {

/// Work of the calling thread during its lifetime, as a region of Kokkos Tools, next to those of ferry's
/// verbs.
///
///   for (int epoch = 0; epoch < epochs; ++epoch) {
///     const ferry::trace_region region("epoch");
///     ...
///   }
///
/// Regions nest in a thread and may overlap between threads. While no tool is loaded a region costs one load.
class trace_region {
 public:
  /// `name` is copied.
  explicit trace_region(std::string_view name) : region_(name) {}

 private:
  detail::tool_region region_;
};

/// True if a tool is loaded (KOKKOS_TOOLS_LIBS).
[[nodiscard]] inline bool is_tracing() noexcept { return Kokkos::Tools::profileLibraryLoaded(); }

}  // namespace ferry
