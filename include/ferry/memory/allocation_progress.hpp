// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace ferry {

/// The progress of an allocation. The strings are valid during the callback only.
struct progress {
  std::string_view space;      ///< name of the memory space
  std::string_view label;      ///< as in memory_by_label
  std::size_t bytes_done = 0;  ///< bytes that are ready
  std::size_t bytes = 0;       ///< size of the allocation

  /// Whether this is the last report of the allocation. Only the last one has bytes_done == bytes.
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
class allocation_progress {
 public:
  /// Observes until it is destroyed, which must happen in the same thread.
  explicit allocation_progress(std::function<void(const progress&)> callback)
      : callback_(std::move(callback)), outer_(std::exchange(innermost(), this)) {}
  allocation_progress(const allocation_progress&) = delete;
  allocation_progress& operator=(const allocation_progress&) = delete;
  ~allocation_progress() { innermost() = outer_; }

  /// Whether this thread is observed.
  [[nodiscard]] static bool is_watched() noexcept { return innermost() != nullptr; }

  /// Calls the observers of this thread; for code that allocates.
  static void report(const progress& now) {
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

  void call(const progress& now) {
    if (busy_ || !callback_) return;
    const busy_mark mark(busy_);
    callback_(now);
  }

  FERRY_SHARED static allocation_progress*& innermost() noexcept {
    thread_local allocation_progress* one = nullptr;
    return one;
  }

  std::function<void(const progress&)> callback_;
  allocation_progress* outer_;
  bool busy_ = false;
};

namespace detail {

/// Limits the rate of an allocation's reports. For the thread that allocates.
class progress_meter {
 public:
  using clock = std::chrono::steady_clock;

  progress_meter(std::string_view space, std::string_view label, std::size_t bytes,
                 clock::time_point begin = clock::now())
      : now_{space, label, 0, bytes}, watched_(allocation_progress::is_watched()), last_(begin) {}

  [[nodiscard]] bool is_watched() const noexcept { return watched_; }

  /// `bytes_done` must not decrease. The final report, with all bytes, is not made here.
  void advance(std::size_t bytes_done) {
    if (watched_) advance(bytes_done, clock::now());
  }
  void advance(std::size_t bytes_done, clock::time_point time) {
    if (!watched_ || bytes_done >= now_.bytes || bytes_done == now_.bytes_done) return;
    if (bytes_done - now_.bytes_done < now_.bytes / 100 && time - last_ < std::chrono::milliseconds(100))
      return;
    now_.bytes_done = bytes_done;
    last_ = time;
    allocation_progress::report(now_);
  }

 private:
  progress now_;
  bool watched_;
  clock::time_point last_;
};

}  // namespace detail
}  // namespace ferry
