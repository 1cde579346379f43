// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/use_record.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

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
  access_tracker(const access_tracker&) = delete;
  access_tracker& operator=(const access_tracker&) = delete;
  ~access_tracker() override;
  [[nodiscard]] int device() const noexcept { return device_; }

  /// Records that work of instance `who` reads the tensor until `end`.
  void add_read(event_handle end, instance_id who);
  /// Records that work of instance `who` writes the tensor until `end`.
  void add_write(event_handle end, instance_id who);

  void promise(bool writes) override;
  void note(bool writes, event_handle end, instance_id who) noexcept override;
  void withdraw(bool writes) noexcept override;

  /// Appends the events that a read by instance `who` must come after. Work of `who` itself is already in
  /// order.
  void before_read(instance_id who, std::vector<event_handle>& events) const;
  /// Appends the events that a write by instance `who` must come after.
  void before_write(instance_id who, std::vector<event_handle>& events) const;

  [[nodiscard]] std::vector<event_handle> before_read(instance_id who) const;
  [[nodiscard]] std::vector<event_handle> before_write(instance_id who) const;

  /// Blocks until all writes recorded so far have ended, so that the host may read the tensor. They stay
  /// recorded until then, so several threads can wait.
  void wait_for_writes();
  /// Blocks until all reads and writes recorded so far have ended, so that the host may write the tensor.
  void wait_for_all();

  /// As wait_for_all, of a tensor that has ended: no error of the work is thrown, and nothing may hold it.
  void wait_ignoring_errors() const noexcept;

  /// Adds the reads and writes recorded so far to the record of the memory, which outlives the tensor.
  void append_to(use_record& record) const;
  /// Others than verbs use the memory from here on, and nobody records their work.
  void note_untracked_use() noexcept { untracked_.store(true, std::memory_order_relaxed); }
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

  [[nodiscard]] use_record& record_of(bool writes) noexcept { return writes ? writes_ : reads_; }
  void wait(bool for_reads);
  void require_read() const;
  void require_write() const;

  const int device_;
  std::unique_ptr<cache_in_front> cache_;
  mutable std::mutex guard_;
  std::atomic<bool> untracked_{false};
  use_record reads_;
  use_record writes_;
};

}  // namespace ferry::detail
