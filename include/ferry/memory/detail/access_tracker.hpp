// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ferry::detail {

/// The work in flight that uses an object: the latest reads and writes of each instance, because the work of
/// an instance runs in order. Thread-safe.
class used_object {
 public:
  used_object() = default;
  used_object(const used_object&) = delete;
  used_object& operator=(const used_object&) = delete;

  /// Records a use in two steps: promise() before its work is enqueued, then record(), which can't fail, or
  /// withdraw().
  void promise();
  void withdraw() noexcept;
  /// Work of instance `who` uses the object until `end`; null: the work has ended.
  void record(bool writes, event_handle end, instance_id who) noexcept;

  /// Adds the uses of another object.
  void append(const used_object& object);
  /// True if the object has uses, and all are of instance `who`. Queries no event.
  [[nodiscard]] bool is_used_by(instance_id who) const noexcept;
  /// True if all work of other instances than `*who` has ended; null: all work.
  [[nodiscard]] bool is_free_for(const instance_id* who) noexcept;
  /// Lends the object for work of instance `*who`; null: of the host. Calls order_after(event&) for the uses
  /// of others, which must order that work after the event.
  void lend(const instance_id* who, function_ref<void(event&)> order_after);
  /// Waits for all uses. Failed work has ended, too; its error is thrown to those who wait for it.
  void wait_ignoring_errors() noexcept;

 protected:
  struct use {
    event_handle end;
    instance_id who;
    bool writes;
  };

  ~used_object() = default;
  void drop_ended(const instance_id* who) noexcept;

  mutable std::mutex guard_;
  std::vector<use> uses_;
  std::size_t promised_ = 0;
};

/// The record of a lease's block, null if `resource` is not a lease of a block_cache. Verbs of several
/// threads may share a block. When the last owner drops the lease, the block returns to its cache, with the
/// uses that may still be in flight.
used_object* block_of_lease(const std::shared_ptr<void>& resource) noexcept;

/// The verbs that a tensor itself allows while a cached_table has some of its rows in device memory.
enum class row_hold : unsigned char {
  none,      ///< everything: no cached_table, or one of its own verbs is being enqueued
  readable,  ///< read it: no row is newer in device memory
  closed     ///< nothing: the tensor lacks changes
};

/// The reads and writes of a tensor in flight. Verbs record them and order later work: reads after writes,
/// writes after both. Thread-safe.
class access_tracker final : public used_object {
 public:
  /// A tracker for a tensor in the memory of a device; -1 for host memory, and if the device is not known.
  explicit access_tracker(int device = -1) noexcept;
  ~access_tracker();
  [[nodiscard]] int device() const noexcept { return device_; }

  /// Records that work of instance `who` reads the tensor until `end`.
  void add_read(event_handle end, instance_id who);
  /// Records that work of instance `who` writes the tensor until `end`.
  void add_write(event_handle end, instance_id who);

  /// Appends the events that a read, or a write, by instance `who` must come after. Work of `who` itself is
  /// already in order.
  void append_earlier(bool writes, instance_id who, std::vector<event_handle>& events) const;
  /// Such events: of a read, the writes.
  [[nodiscard]] std::vector<event_handle> before_read(instance_id who) const;
  /// Such events: of a write, all.
  [[nodiscard]] std::vector<event_handle> before_write(instance_id who) const;

  /// Blocks until all writes recorded so far have ended, so that the host may read the tensor. They stay
  /// recorded until then, so several threads can wait.
  void wait_for_writes();
  /// Blocks until all reads and writes recorded so far have ended, so that the host may write the tensor.
  void wait_for_all();

  /// Others than verbs use the memory from here on, and nobody records their work.
  void record_untracked_use() noexcept { untracked_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool has_untracked_uses() const noexcept {
    return untracked_.load(std::memory_order_relaxed);
  }

  /// Registers a cached_table in front of the tensor `label`; false if there is one already.
  [[nodiscard]] bool attach_cache(const std::string& label);
  /// An attached cached_table holds the rows: from now on before_read() and wait_for_writes() throw
  /// invalid_argument under row_hold::closed, and before_write() and wait_for_all() unless under
  /// row_hold::none.
  void hold(row_hold how) noexcept;
  /// Lifts the hold for the calling thread, which enqueues a verb of the cached_table, up to the next hold().
  void open() noexcept;
  /// The cached_table has ended.
  void detach_cache() noexcept;

 private:
  struct cache_in_front;

  void require_allowed(bool writes) const;
  void wait(bool writes);

  const int device_;
  std::unique_ptr<cache_in_front> cache_;
  std::atomic<bool> untracked_{false};
};

}  // namespace ferry::detail
