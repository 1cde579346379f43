// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace ferry::detail {

/// Nanoseconds of the clock of the trace.
[[nodiscard]] std::int64_t trace_now();

/// Work of a device whose times are known once it has ended.
class timed_work {
 public:
  timed_work() = default;
  timed_work(const timed_work&) = delete;
  timed_work& operator=(const timed_work&) = delete;
  virtual ~timed_work() = default;
  [[nodiscard]] virtual bool ended() noexcept = 0;
  /// Waits, then gives begin and end by trace_now's clock. False if the device failed.
  [[nodiscard]] virtual bool times(std::int64_t& begin, std::int64_t& end) noexcept = 0;
};

/// Adds the work as an event of a stream to the trace that is written. The label is copied.
void trace_work(std::unique_ptr<timed_work> work, std::string_view label, const char* category, int device,
                std::uint64_t stream);

}  // namespace ferry::detail
