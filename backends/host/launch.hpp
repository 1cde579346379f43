// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <string>
#include <string_view>

namespace ferry::host {

/// Functors are called in place.
struct launch_functions {
  /// Called after parallel_for, whose functor must not be gone before it has run. Kokkos's Serial, OpenMP and
  /// Threads have then ended, HPX has not.
  template <HostExecutionSpace Exec>
  static void end_launch(const Exec& exec, const std::string& label) {
    static const bool goes_on = std::string_view(Exec::name()) == "HPX";
    if (goes_on) exec.fence(label);
  }
  template <class Policy>
  using by_argument = Policy;
  template <class Functor, class Policy>
  static consteval bool launches_by_argument() {
    return true;
  }
};

}  // namespace ferry::host
