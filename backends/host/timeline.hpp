// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace ferry::host {

struct timeline_functions {
  /// For kernels: nanoseconds, by a clock that all of them share.
  static std::uint64_t clock_in_kernel() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
};

}  // namespace ferry::host
