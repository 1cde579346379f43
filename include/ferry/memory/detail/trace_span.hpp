// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/trace_listeners.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::detail {

/// Work of the calling thread during its lifetime, as an event of the trace and a range of a profiler.
/// Without listeners it holds a null pointer, so verbs and kernels can have one each.
class trace_span {
 public:
  /// Named by two parts, which are joined for a listener only. Without `enabled` there is no event.
  trace_span(std::string_view first, std::string_view second, const char* category, bool enabled = true) {
    if (const unsigned who = trace_listeners(); who != 0 && enabled) begin(who, first, second, category);
  }
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;
  ~trace_span() {
    if (recording_ != nullptr) end();
  }

  [[nodiscard]] bool is_recording() const { return recording_ != nullptr; }

  /// Notes a fact about the event. Callers with several facts ask is_recording() first.
  void note(std::string_view key, std::string_view value);
  void note(std::string_view key, std::int64_t value);

 private:
  struct recording;

  void begin(unsigned who, std::string_view first, std::string_view second, const char* category) noexcept;
  void end() noexcept;

  recording* recording_ = nullptr;
};

}  // namespace ferry::detail
