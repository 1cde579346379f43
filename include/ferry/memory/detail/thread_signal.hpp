// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <chrono>
#include <ctime>
#include <mutex>

namespace ferry::detail {

/// As std::condition_variable; see thread_mark for why.
class thread_signal {
 public:
  thread_signal() noexcept {
    pthread_condattr_t by_steady_clock;
    ::pthread_condattr_init(&by_steady_clock);
    ::pthread_condattr_setclock(&by_steady_clock, CLOCK_MONOTONIC);
    ::pthread_cond_init(&signal_, &by_steady_clock);
    ::pthread_condattr_destroy(&by_steady_clock);
  }
  thread_signal(const thread_signal&) = delete;
  thread_signal& operator=(const thread_signal&) = delete;
  ~thread_signal() { ::pthread_cond_destroy(&signal_); }

  /// Waits until holds(). The lock is released while the thread sleeps.
  template <class Predicate>
  void wait(std::unique_lock<std::mutex>& lock, const Predicate& holds) {
    while (!holds()) ::pthread_cond_wait(&signal_, lock.mutex()->native_handle());
  }
  /// Waits until it is notified, at most for `time`; or without a notification.
  template <class Duration>
  void wait_for(std::unique_lock<std::mutex>& lock, Duration time) {
    wait_until(lock, end_of(time));
  }
  /// Waits until holds(), at most for `time`. Returns holds().
  template <class Duration, class Predicate>
  bool wait_for(std::unique_lock<std::mutex>& lock, Duration time, const Predicate& holds) {
    const auto end = end_of(time);
    while (!holds())
      if (!wait_until(lock, end)) return holds();
    return true;
  }
  void notify_one() noexcept { ::pthread_cond_signal(&signal_); }
  void notify_all() noexcept { ::pthread_cond_broadcast(&signal_); }

 private:
  /// Now and a time, which may be the longest of its type: a century is as good.
  template <class Duration>
  static auto end_of(Duration time) {
    constexpr std::chrono::hours century(24 * 365 * 100);
    using clock = std::chrono::steady_clock;
    return clock::now() + (time < century ? std::chrono::duration_cast<clock::duration>(time)
                                          : std::chrono::duration_cast<clock::duration>(century));
  }
  /// False after the end.
  template <class Time>
  bool wait_until(std::unique_lock<std::mutex>& lock, Time end) {
    const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(end.time_since_epoch()).count();
    constexpr long second = 1'000'000'000;
    const timespec until{static_cast<std::time_t>(since / second), static_cast<long>(since % second)};
    return ::pthread_cond_timedwait(&signal_, lock.mutex()->native_handle(), &until) == 0;
  }

  pthread_cond_t signal_;
};

}  // namespace ferry::detail
