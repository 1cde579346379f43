// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/allocation_progress.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace ferry {

/// The progress of one copy. The strings are valid during the callback only.
struct FERRY_SHARED copied {
  std::string_view from;       ///< label of the source
  std::string_view to;         ///< label of the destination
  std::size_t bytes_done = 0;  ///< bytes of the destination that host threads are done with
  std::size_t bytes = 0;       ///< bytes of the destination

  /// True if this is the last report of the copy. Only the last one has bytes_done == bytes.
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
class copy_progress : public detail::thread_observer<copied> {
 public:
  /// Observes until it is destroyed, which must happen in the same thread.
  explicit copy_progress(std::function<void(const copied&)> callback)
      : thread_observer(std::move(callback)) {}
};

namespace detail {

using copy_meter = report_meter<copied>;

}  // namespace detail
}  // namespace ferry
