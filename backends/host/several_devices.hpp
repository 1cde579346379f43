// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "identity.hpp"

#include <ferry/runtime/detail/backend.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace ferry::host {

/// Nothing to hold while a kernel is launched.
struct no_lock {};

/// The host is the only device, number 0.
struct several_devices_functions {
  static constexpr int default_device() { return 0; }
  static constexpr int device_count() { return 1; }
  static void enter_device(int) {}

  /// The name of the processor and the memory of the machine; free is what programs can still get without
  /// swapping.
  static device_summary summary_of(int) {
    device_summary summary;
    summary.name = identity_functions::device_identity().device;
    summary.memory_total = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::string available = line_of("/proc/meminfo", "MemAvailable");
    summary.memory_free = static_cast<std::size_t>(std::strtoull(available.c_str(), nullptr, 10)) * 1024;
    return summary;
  }

  template <class Exec>
  static Exec instance_on(int) {
    return Exec{};
  }
  template <class Exec>
  static bool reaches_device(const Exec&, int) {
    return true;
  }
  static bool devices_reach(int, int) { return true; }
  static no_lock lock_instances() { return {}; }
  template <class Kernel>
  static no_lock lock_launch() {
    return {};
  }
};

}  // namespace ferry::host
