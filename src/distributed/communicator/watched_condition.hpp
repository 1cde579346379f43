// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ferry::detail {

/// A condition variable for threads that mostly arrive together: a waiter watches for a moment before it
/// sleeps, because a thread that slept wakes up some ten microseconds late. Every change of what the waiters
/// wait for is made under the mutex and followed by notify_all() under the same lock.
class watched_condition {
 public:
  /// Watches only if each of `threads` threads may have a processor.
  explicit watched_condition(int threads)
      : watches_(std::thread::hardware_concurrency() >= static_cast<unsigned>(threads)) {}

  /// Locks the mutex. Threads that meet want it at once, each for less than a microsecond: one that slept for
  /// it would come late to the next meeting, too.
  [[nodiscard]] std::unique_lock<std::mutex> lock(std::mutex& guard) const {
    std::unique_lock<std::mutex> held(guard, std::defer_lock);
    take(held);
    return held;
  }
  void notify_all() noexcept {
    changes_.fetch_add(1, std::memory_order_relaxed);
    sleepers_.notify_all();
  }
  /// May return early, as that of std::condition_variable.
  std::cv_status wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point until) {
    return watch(lock) ? std::cv_status::no_timeout : sleepers_.wait_until(lock, until);
  }
  template <class Predicate>
  void wait(std::unique_lock<std::mutex>& lock, const Predicate& holds) {
    while (!holds())
      if (!watch(lock)) sleepers_.wait(lock);
  }

 private:
  static constexpr std::chrono::microseconds moment{50};

  void take(std::unique_lock<std::mutex>& held) const {
    if (watches_)
      for (const auto until = std::chrono::steady_clock::now() + moment;
           std::chrono::steady_clock::now() < until;)
        if (held.try_lock()) return;
    held.lock();
  }
  /// True if something changed since the call. The last look is under the lock, so no change is missed.
  bool watch(std::unique_lock<std::mutex>& held) {
    if (!watches_) return false;
    const std::uint64_t known = changes_.load(std::memory_order_relaxed);
    held.unlock();
    const auto until = std::chrono::steady_clock::now() + moment;
    while (changes_.load(std::memory_order_relaxed) == known && std::chrono::steady_clock::now() < until)
      continue;
    take(held);
    return changes_.load(std::memory_order_relaxed) != known;
  }

  const bool watches_;
  std::atomic<std::uint64_t> changes_{0};
  std::condition_variable sleepers_;
};

}  // namespace ferry::detail
