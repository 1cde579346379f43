// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <Kokkos_Macros.hpp>

#include <string>
#include <string_view>

namespace ferry::host {

/// The calling thread returns from a launch when the kernel has ended.
struct launch_functions {
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch(const void*) {}

  /// Called after parallel_for: waits until the functor has run, if Kokkos does not. Its Serial, OpenMP
  /// and Threads do, its HPX need not.
  template <HostExecutionSpace Exec>
  static void end_launch(const Exec& exec, const std::string& label) {
    static const bool is_asynchronous = std::string_view(Exec::name()) == "HPX";
    if (is_asynchronous) exec.fence(label);
  }
};

}  // namespace ferry::host
