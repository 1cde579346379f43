// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/process_wide.hpp>

#include <mutex>

namespace ferry::detail {

/// Kokkos does not lock its lists of devices, which the first instance of a device changes.
struct instance_lock {
  std::mutex guard;
};
inline std::unique_lock<std::mutex> lock_instances() {
  static instance_lock& one_at_a_time = process_wide<instance_lock>();
  return std::unique_lock(one_at_a_time.guard);
}

/// A lock that is held for some microseconds: a thread that sleeps meanwhile wakes up later than that.
inline std::unique_lock<std::mutex> lock_shortly(std::mutex& guard) {
  constexpr int tries = 2000;
  std::unique_lock lock(guard, std::defer_lock);
  for (int turn = 0; turn < tries; ++turn)
    if (lock.try_lock()) return lock;
  lock.lock();
  return lock;
}

}  // namespace ferry::detail
