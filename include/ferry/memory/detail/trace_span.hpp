#pragma once

#include <ferry/memory/detail/trace_log.hpp>
#include <ferry/memory/detail/trace_text.hpp>

#include <cstdint>
#include <string>
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
    if (on_ != nullptr) note_text(key, value);
  }

 private:
  struct heard {
    unsigned who = 0;
    const char* category = "";
    std::int64_t begin = 0;
    std::string name, arguments;
  };

  void begin(unsigned who, std::string_view first, std::string_view second, const char* category) noexcept {
    try {
      on_ = new heard{who, category, 0, std::string(first).append(second), {}};
      if ((who & trace_home::to_ranges) != 0) trace_home::get().ranges.load()->begin(on_->name.c_str());
      on_->begin = trace_now();
    } catch (...) {  // no memory for the event: the work matters more
    }
  }
  void end() noexcept {
    const std::int64_t now = trace_now();
    if ((on_->who & trace_home::to_ranges) != 0) trace_home::get().ranges.load()->end();
    try {
      if ((on_->who & trace_home::to_log) != 0)
        trace_home::get().log.load()->add(on_->name, on_->category, on_->begin, now, on_->arguments);
    } catch (...) {
    }
    delete on_;
  }
  void note_text(std::string_view key, std::string_view value) noexcept {
    try {
      append_member(on_->arguments, key, value);
    } catch (...) {
    }
  }
  void note_text(std::string_view key, std::int64_t value) noexcept {
    try {
      append_member(on_->arguments, key, value);
    } catch (...) {
    }
  }

  heard* on_ = nullptr;
};

}  // namespace ferry::detail
