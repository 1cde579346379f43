// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// Calls a function for the events of the thread that constructed it, during its lifetime. Observers nest:
/// the innermost is called first. What a callback does itself is not reported to it.
template <class Event>
class FERRY_SHARED thread_observer {
 public:
  /// True if this thread is observed.
  [[nodiscard]] static bool is_watched() { return innermost() != nullptr; }

  /// Calls the observers of this thread; for the code that is observed.
  static void report(const Event& now) {
    for (auto* observer = innermost(); observer != nullptr; observer = observer->outer_) observer->call(now);
  }

  thread_observer(const thread_observer&) = delete;
  thread_observer& operator=(const thread_observer&) = delete;

 protected:
  explicit thread_observer(std::function<void(const Event&)> callback)
      : callback_(std::move(callback)), outer_(std::exchange(innermost(), this)) {}
  ~thread_observer() { innermost() = outer_; }

 private:
  void call(const Event& now) {
    if (!callback_ || std::exchange(busy_, true)) return;
    const struct call_end {
      bool& busy;
      ~call_end() { busy = false; }
    } end{busy_};
    callback_(now);
  }
  static thread_observer*& innermost() { return thread_wide<thread_observer>(); }

  std::function<void(const Event&)> callback_;
  thread_observer* outer_;
  bool busy_ = false;
};

/// Limits the rate of reports: after at least 1 % of the bytes or 100 ms. For the observed thread. An Event
/// has two names, the bytes that are done, and all bytes.
template <class Event>
class report_meter {
 public:
  using clock = std::chrono::steady_clock;

  report_meter(std::string_view first, std::string_view second, std::size_t bytes,
               clock::time_point begin = clock::now())
      : now_{first, second, 0, bytes}, watched_(thread_observer<Event>::is_watched()), last_(begin) {}

  [[nodiscard]] bool is_watched() const noexcept { return watched_; }

  /// `bytes_done` must not decrease. The last report, with all bytes, is that of finish().
  void advance(std::size_t bytes_done, clock::time_point time = clock::now()) {
    if (!watched_ || bytes_done >= now_.bytes || bytes_done == now_.bytes_done) return;
    if (bytes_done - now_.bytes_done < now_.bytes / 100 && time - last_ < std::chrono::milliseconds(100))
      return;
    now_.bytes_done = bytes_done;
    last_ = time;
    thread_observer<Event>::report(now_);
  }
  void finish() {
    if (!watched_) return;
    now_.bytes_done = now_.bytes;
    thread_observer<Event>::report(now_);
  }

 private:
  Event now_;
  bool watched_;
  clock::time_point last_;
};

}  // namespace ferry::detail

namespace ferry {

/// The progress of an allocation. The strings are valid during the callback only.
struct FERRY_SHARED progress {
  std::string_view space;      ///< name of the memory space
  std::string_view label;      ///< as in memory_by_label
  std::size_t bytes_done = 0;  ///< bytes that are ready
  std::size_t bytes = 0;       ///< size of the allocation

  /// True if this is the last report of the allocation. Only the last one has bytes_done == bytes.
  [[nodiscard]] bool done() const noexcept { return bytes_done == bytes; }
};

/// Observes the allocations of this thread during its lifetime.
///
///   ferry::allocation_progress watch([](const ferry::progress& p) { bar(p.label, p.bytes_done, p.bytes); });
///
/// The callback runs in this thread only. It is called after at least 1 % of the bytes or 100 ms, and once
/// when the allocation is done. Allocations without work per page (device memory, pageable memory, all spaces
/// of a host backend) are reported once, at the end. An exception of the callback ends the allocation and
/// frees its memory. Observers nest: the innermost is called first. A callback's own allocations are not
/// reported to it.
class allocation_progress : public detail::thread_observer<progress> {
 public:
  /// Observes until it is destroyed, which must happen in the same thread.
  explicit allocation_progress(std::function<void(const progress&)> callback)
      : thread_observer(std::move(callback)) {}
};

namespace detail {

using progress_meter = report_meter<progress>;

}  // namespace detail
}  // namespace ferry
