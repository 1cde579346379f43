// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/timed_work.hpp>
#include <ferry/memory/detail/trace_listeners.hpp>
#include <ferry/memory/detail/trace_span.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <memory>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// Work that is enqueued on `exec` while this lives, as an event of the trace: on a host in the calling
/// thread.
template <class Exec>
class device_span {
 public:
  device_span(const Exec&, std::string_view label, const char* category) : span_(label, {}, category) {}

 private:
  trace_span span_;
};

/// On a device between two points of its stream. No such event for work that is captured into a graph.
template <class Exec>
  requires requires(const Exec& exec) { execution_backend<Exec>::start_timer(exec); }
class device_span<Exec> {
 public:
  /// The label lives as long as the span.
  device_span(const Exec& exec, std::string_view label, const char* category)
      : enqueue_(label, {}, "enqueue"), exec_(exec), label_(label), category_(category) {
    if (enqueue_.is_recording()) begin();
  }
  device_span(const device_span&) = delete;
  device_span& operator=(const device_span&) = delete;
  ~device_span() {
    if (timer_ != nullptr) end();
  }

 private:
  using backend = execution_backend<Exec>;

  [[gnu::cold, gnu::noinline]] void begin() noexcept {
    try {
      if ((trace_listeners() & trace_file) != 0) timer_ = backend::start_timer(exec_);
    } catch (...) {  // no memory, or a failing device, which the work itself will report
    }
  }
  [[gnu::cold, gnu::noinline]] void end() noexcept {
    try {
      if (backend::stop_timer(exec_, *timer_))
        trace_work(std::move(timer_), label_, category_, backend::device_of(exec_), backend::id_of(exec_));
    } catch (...) {
    }
  }

  trace_span enqueue_;  ///< of the call
  const Exec& exec_;
  std::string_view label_;
  const char* category_;
  std::unique_ptr<timed_work> timer_;
};

}  // namespace ferry::detail
