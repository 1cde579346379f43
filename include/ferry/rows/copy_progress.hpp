// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace ferry {

/// The progress of one copy. The strings are valid during the callback only.
struct copied {
  std::string_view from;       ///< label of the source
  std::string_view to;         ///< label of the destination
  std::size_t bytes_done = 0;  ///< bytes of the destination that host threads are done with
  std::size_t bytes = 0;       ///< bytes of the destination

  /// Whether this is the last report of the copy. Only the last one has bytes_done == bytes.
  [[nodiscard]] bool done() const noexcept { return bytes_done == bytes; }
};

/// Observes the copies that this thread starts during its lifetime.
///
///   ferry::copy_progress watch([](const ferry::copied& c) { bar(c.to, c.bytes_done, c.bytes); });
///
/// The callback runs in this thread only. A copy that occupies the thread (path::staged, the default between
/// pageable memory and a device) calls it after at least 1 % of the bytes or 100 ms, between two pieces of
/// the thread's own work, and once when the host's part is done: the last pieces may still be in transfer,
/// see ferry::ticket. Other copies are reported once, when they are enqueued. An exception of the callback
/// ends a copy that occupies the thread, which leaves the destination partly written; other copies are in
/// flight by then and ended before the exception leaves the verb. Observers nest: the innermost is called
/// first. Copies by a callback are not reported to it. The callback must not wait for the instance of the
/// copy, nor for the device, and must not enqueue work or call verbs that do: a kernel of the copy may be
/// waiting for this thread. Without an observer a copy reads one variable of the thread.
class copy_progress {
 public:
  /// Observes until it is destroyed, which must happen in the same thread.
  explicit copy_progress(std::function<void(const copied&)> callback)
      : callback_(std::move(callback)), outer_(std::exchange(innermost(), this)) {}
  copy_progress(const copy_progress&) = delete;
  copy_progress& operator=(const copy_progress&) = delete;
  ~copy_progress() { innermost() = outer_; }

  /// Whether this thread is observed.
  [[nodiscard]] static bool is_watched() noexcept { return innermost() != nullptr; }

  /// Calls the observers of this thread; for code that copies.
  static void report(const copied& now) {
    for (auto* each = innermost(); each != nullptr; each = each->outer_) each->call(now);
  }

 private:
  struct busy_mark {
    explicit busy_mark(bool& mark) : of(mark) { of = true; }
    busy_mark(const busy_mark&) = delete;
    busy_mark& operator=(const busy_mark&) = delete;
    ~busy_mark() { of = false; }
    bool& of;
  };

  void call(const copied& now) {
    if (busy_ || !callback_) return;
    const busy_mark mark(busy_);
    callback_(now);
  }

  FERRY_SHARED static copy_progress*& innermost() noexcept {
    thread_local copy_progress* one = nullptr;
    return one;
  }

  std::function<void(const copied&)> callback_;
  copy_progress* outer_;
  bool busy_ = false;
};

namespace detail {

/// Limits the rate of a copy's reports. For the thread that called the verb.
class copy_meter {
 public:
  copy_meter(std::string_view from, std::string_view to, std::size_t bytes)
      : watched_(copy_progress::is_watched()), now_{from, to, 0, bytes} {
    if (watched_) last_ = clock::now();
  }

  /// `bytes_done` must not decrease.
  void advance(std::size_t bytes_done) {
    if (!watched_ || bytes_done >= now_.bytes || bytes_done == now_.bytes_done) return;
    const auto time = clock::now();
    if (bytes_done - now_.bytes_done < now_.bytes / 100 && time - last_ < std::chrono::milliseconds(100))
      return;
    now_.bytes_done = bytes_done;
    last_ = time;
    copy_progress::report(now_);
  }
  void finish() {
    if (!watched_) return;
    now_.bytes_done = now_.bytes;
    copy_progress::report(now_);
  }

 private:
  using clock = std::chrono::steady_clock;
  bool watched_;
  copied now_;
  clock::time_point last_;
};

}  // namespace detail
}  // namespace ferry
