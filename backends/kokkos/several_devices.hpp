// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../kokkos_locks.hpp"

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <mutex>

namespace ferry::kokkos {

/// Held while anything is enqueued: Kokkos promises it of one thread of an instance.
struct launch_lock {
  std::mutex guard;
};
inline std::mutex& launch_guard() {
  static launch_lock& one_at_a_time = detail::process_wide<launch_lock>();
  return one_at_a_time.guard;
}

/// The device that Kokkos uses is the only one, number 0.
struct several_devices_functions {
  static constexpr int default_device() { return 0; }
  static constexpr int device_count() { return 1; }
  static void enter_device(int) {}

  /// Kokkos names the execution space, and tells nothing of the memory.
  static device_summary summary_of(int) {
    return {detail::joined("the device of Kokkos::", Kokkos::DefaultExecutionSpace::name())};
  }

  static std::unique_lock<std::mutex> lock_instances() { return detail::lock_instances(); }
  template <class Exec>
  static Exec instance_on(int) {
    const auto lock = lock_instances();
    return Kokkos::Experimental::partition_space(Exec(), 1)[0];
  }
  template <class Exec>
  static bool reaches_device(const Exec&, int) {
    return true;
  }
  static bool devices_reach(int, int) { return true; }
  template <class Kernel>
  static std::unique_lock<std::mutex> lock_launch() {
    return detail::lock_shortly(launch_guard());
  }
};

}  // namespace ferry::kokkos
