// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

namespace ferry::detail {

/// A point in the work of an execution space instance. Backends derive from it. A null pointer means
/// that the work has ended.
class event {
 public:
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  virtual ~event() = default;

  /// Blocks the calling thread until the work before this point has ended.
  virtual void wait() = 0;
  /// True if that work has ended. Never blocks.
  [[nodiscard]] virtual bool ready() = 0;
};

using event_handle = std::shared_ptr<event>;

/// True if work has ended; false if the query fails. A wait will throw the failure.
inline bool has_ended(event& work) noexcept {
  try {
    return work.ready();
  } catch (...) {
    return false;
  }
}

/// Identifies an execution space instance. Work of equal ids runs in the order in which it is enqueued. An id
/// must not be reused while work of its instance is in flight: a stream's number is suitable, its address is
/// not.
using instance_id = std::uint64_t;
/// The native stream of an instance, which a later stream may have, too; null on a host.
using stream_handle = const void*;

}  // namespace ferry::detail
