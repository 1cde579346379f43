// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <memory>

namespace ferry::host {

/// A host execution space is never captured into a graph.
struct capture_functions {
  struct capture_pause {
    explicit capture_pause(bool) {}
  };

  template <HostExecutionSpace Exec>
  static constexpr bool capturing(const Exec&) {
    return false;
  }
  template <HostExecutionSpace Exec>
  static void retain(const Exec&, const std::shared_ptr<void>&) {}
};

}  // namespace ferry::host
