#pragma once

#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/work_in_flight.hpp>

#include <mutex>
#include <utility>
#include <vector>

namespace ferry {

/// The reads and writes of a tensor that are still in flight, so that later work comes after just these:
/// readers after writes, writers after both. Kept by the tensor, filled in by the verbs. Thread-safe.
class access_tracker {
 public:
  /// Work of instance `who` until `done` reads the tensor.
  void add_read(event_handle done, instance_id who) {
    const std::lock_guard lock(guard_);
    reads_.add(std::move(done), who);
  }
  /// Work of instance `who` until `done` writes to the tensor.
  void add_write(event_handle done, instance_id who) {
    const std::lock_guard lock(guard_);
    writes_.add(std::move(done), who);
  }

  /// The same in two steps: promise() before the work is enqueued, then either note(), which can't fail, or
  /// withdraw().
  void promise(bool writes) {
    const std::lock_guard lock(guard_);
    (writes ? writes_ : reads_).promise();
  }
  void note(bool writes, event_handle done, instance_id who) noexcept {
    const std::lock_guard lock(guard_);
    (writes ? writes_ : reads_).add_promised(std::move(done), who);
  }
  void withdraw(bool writes) noexcept {
    const std::lock_guard lock(guard_);
    (writes ? writes_ : reads_).withdraw();
  }

  /// Appends what a read by instance `who` must be ordered after; its own work needs no order.
  void before_read(instance_id who, std::vector<event_handle>& to) const {
    const std::lock_guard lock(guard_);
    writes_.others(who, to);
  }
  /// Appends what a write by instance `who` must be ordered after.
  void before_write(instance_id who, std::vector<event_handle>& to) const {
    const std::lock_guard lock(guard_);
    writes_.others(who, to);
    reads_.others(who, to);
  }

  [[nodiscard]] std::vector<event_handle> before_read(instance_id who) const {
    std::vector<event_handle> found;
    before_read(who, found);
    return found;
  }
  [[nodiscard]] std::vector<event_handle> before_write(instance_id who) const {
    std::vector<event_handle> found;
    before_write(who, found);
    return found;
  }

  /// Blocks until the host may read the tensor: until all writes noted so far have ended. They stay noted
  /// until then, so that each of several threads waits.
  void wait_for_writes() {
    std::vector<event_handle> found;
    {
      const std::lock_guard lock(guard_);
      writes_.all(found);
    }
    for (const auto& each : found) each->wait();
    const std::lock_guard lock(guard_);
    writes_.drop(found);
  }
  /// Blocks until the host may write to the tensor.
  void wait_for_all() {
    std::vector<event_handle> found;
    {
      const std::lock_guard lock(guard_);
      writes_.all(found);
      reads_.all(found);
    }
    for (const auto& each : found) each->wait();
    const std::lock_guard lock(guard_);
    writes_.drop(found);
    reads_.drop(found);
  }

 private:
  mutable std::mutex guard_;
  work_in_flight reads_;
  work_in_flight writes_;
};

}  // namespace ferry
