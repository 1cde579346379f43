// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/trace_home.hpp>
#include <ferry/memory/detail/trace_log.hpp>
#include <ferry/memory/detail/trace_text.hpp>

#include <cstdint>
#include <new>
#include <string_view>

namespace ferry::detail {

/// What the calling thread does while it lives, as an event of the trace and a range of a profiler. Without
/// listeners it holds a null pointer, so verbs and kernels can have one each.
class trace_span {
 public:
  /// Named by two parts, which are joined for a listener only. Without `wanted` there is no event.
  trace_span(std::string_view first, std::string_view second, const char* category, bool wanted = true) {
    if (const unsigned who = trace_listeners(); who != 0 && wanted) begin(who, first, second, category);
  }
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;
  ~trace_span() {
    if (on_ != nullptr) end();
  }

  [[nodiscard]] bool is_heard() const { return on_ != nullptr; }

  /// Notes a fact about the event. Callers with several facts ask is_heard() first.
  template <class Value>
  void note(std::string_view key, const Value& value) {
    if (on_ != nullptr) on_->arguments.append_member(key, value);
  }

 private:
  struct heard {
    unsigned who;
    const char* category;
    std::int64_t begin = 0;
    trace_name name{};
    trace_arguments arguments{};
  };

  [[gnu::cold, gnu::noinline]] void begin(unsigned who, std::string_view first, std::string_view second,
                                          const char* category) noexcept {
    on_ = new (std::nothrow) heard{who, category};
    if (on_ == nullptr) return;  // no memory for the event: the work matters more
    on_->name.append_escaped(first);
    on_->name.append_escaped(second);
    if ((who & trace_home::to_ranges) != 0) trace_home::get().ranges.load()->begin(on_->name.data);
    on_->begin = trace_now();
  }
  [[gnu::cold, gnu::noinline]] void end() noexcept {
    const std::int64_t now = trace_now();
    if ((on_->who & trace_home::to_ranges) != 0) trace_home::get().ranges.load()->end();
    if ((on_->who & trace_home::to_log) != 0) try {
        trace_home::get().log.load()->add(on_->name, on_->category, on_->begin, now, on_->arguments);
      } catch (...) {  // no memory for the event, as above
      }
    delete on_;
  }

  heard* on_ = nullptr;
};

}  // namespace ferry::detail
