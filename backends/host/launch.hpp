// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <string>
#include <string_view>

namespace ferry::host {

/// The calling thread returns from a launch when the kernel has ended.
struct launch_functions {
  /// Called after parallel_for: waits until the functor has run, where Kokkos does not. Its Serial, OpenMP
  /// and Threads do, its HPX need not.
  template <HostExecutionSpace Exec>
  static void end_launch(const Exec& exec, const std::string& label) {
    static const bool goes_on = std::string_view(Exec::name()) == "HPX";
    if (goes_on) exec.fence(label);
  }
};

}  // namespace ferry::host
