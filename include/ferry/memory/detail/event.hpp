#pragma once

#include <cstdint>
#include <memory>

namespace ferry {

/// A point in the work of an execution space instance. Backends derive from it; a null pointer stands for
/// work that has already ended.
class event {
 public:
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  virtual ~event() = default;

  /// Blocks the calling thread until the work before this point has ended.
  virtual void wait() = 0;
  /// Never blocks.
  [[nodiscard]] virtual bool ready() = 0;
};

using event_handle = std::shared_ptr<event>;

namespace detail {
/// A device that can't answer says so to whoever waits; its work counts as not ended.
inline bool has_ended(event& work) noexcept {
  try {
    return work.ready();
  } catch (...) {
    return false;
  }
}
}  // namespace detail

/// Which execution space instance work belongs to; two with one id do their work in the order in which it is
/// enqueued. A value must not stand for another instance while work of the first is in flight: a stream's
/// number will do, its address may come back too early.
using instance_id = std::uint64_t;

}  // namespace ferry
