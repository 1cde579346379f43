// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/trace_home.hpp>
#include <ferry/memory/detail/trace_log.hpp>
#include <ferry/memory/detail/trace_span.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <memory>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// Work that is enqueued on `exec` while this lives, as an event of the trace: on a device between two points
/// of its stream, on a host in the calling thread. No device event for work that is captured into a graph.
template <class Exec>
class device_span {
 public:
  device_span(const Exec& exec, std::string_view label, const char* category) {
    if (trace_listeners() != 0) begin(exec, label, category);
  }
  device_span(const device_span&) = delete;
  device_span& operator=(const device_span&) = delete;
  ~device_span() {
    if (on_ != nullptr) end();
  }

 private:
  static constexpr bool has_timer = requires(const Exec& exec) {
    execution_backend<Exec>::start_timer(exec);
  };

  struct heard {
    heard(const Exec& on, std::string_view name, const char* kind)
        : span(name, {}, has_timer ? "enqueue" : kind), exec(on), label(name), category(kind) {}
    trace_span span;  ///< of the call, which on a host is the work itself
    const Exec& exec;
    std::string_view label;  ///< lives as long as the call
    const char* category;
    std::unique_ptr<timed_work> timer;
  };

  [[gnu::cold, gnu::noinline]] void begin(const Exec& exec, std::string_view label,
                                          const char* category) noexcept {
    try {
      on_ = new heard(exec, label, category);
      if constexpr (has_timer)
        if ((trace_listeners() & trace_home::to_log) != 0)
          on_->timer = execution_backend<Exec>::start_timer(exec);
    } catch (...) {  // no memory, or a failing device, which the work itself will report
    }
  }
  [[gnu::cold, gnu::noinline]] void end() noexcept {
    try {
      if constexpr (has_timer) {
        if (on_->timer != nullptr && execution_backend<Exec>::stop_timer(on_->exec, *on_->timer)) {
          trace_name name;
          name.append_escaped(on_->label);
          trace_home::get().log.load()->add(std::move(on_->timer), name, on_->category,
                                            execution_backend<Exec>::device_of(on_->exec),
                                            execution_backend<Exec>::id_of(on_->exec));
        }
      }
    } catch (...) {
    }
    delete on_;
  }

  heard* on_ = nullptr;
};

}  // namespace ferry::detail
