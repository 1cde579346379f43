// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ferry::detail {

/// The threads of the default host instance and the time that a kernel waits for them. All 0 if a kernel has
/// one thread, or threads that are not OpenMP's, or if the caller is in a parallel region.
struct wake_time {
  static constexpr double slow = 1e-4;  ///< seconds; threads with a processor each take a tenth of it

  int threads = 0;
  int processors = 0;  ///< that the process may run on
  bool spins = false;  ///< OMP_WAIT_POLICY lets idle threads spin
  double seconds = 0;  ///< to wake the threads and to wait for them, on average

  /// The advice for slow threads; empty if they are not slow, or if no variable helps.
  [[nodiscard]] std::string advice() const;
};

/// Wakes the threads some times. Takes 0.2 ms, and at most about 20 ms if they are slow.
[[nodiscard]] wake_time measure_wake_time();

/// Prints the advice once in a process, unless the variable FERRY_HINTS is 0. The first kernel that wakes
/// threads calls it.
void hint_at_slow_threads() noexcept;

}  // namespace ferry::detail
