// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/event.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace ferry::detail {

/// The work in flight that uses an object: the latest point per instance, because the work of an instance
/// runs in order. Not thread-safe: the owner locks.
class use_record {
 public:
  /// Records a use in two steps: promise() before its work is enqueued, then note(), which can't fail, or
  /// withdraw().
  void promise();
  void withdraw() noexcept { --promised_; }
  /// Work of instance `who` uses the object until `end`; null: the work has ended.
  void note(event_handle end, instance_id who) noexcept;
  /// Both steps.
  void add(event_handle end, instance_id who);

  /// Adds the points of another record.
  void append(const use_record& record);

  /// Lends the object: work of `borrower` is ordered after all earlier points, so its points replace them.
  void lend_to(instance_id borrower) noexcept;
  /// Lends it to a borrower without an instance, whose work comes after no point.
  void lend() noexcept { lent_to_instance_ = false; }

  [[nodiscard]] bool is_empty() const noexcept { return uses_.empty(); }
  /// True if all points are of instance `*who`; null: true if there are none. Queries no event.
  [[nodiscard]] bool is_only_of(const instance_id* who) const noexcept;
  /// Calls visit(event) for the points of other instances than `*who`; null: for all.
  template <class Visit>
  void visit_others(const instance_id* who, const Visit& visit) const {
    for (const use_point& use : uses_)
      if (who == nullptr || use.who != *who) visit(use.end);
  }

  /// Drops the points that have ended, of other instances than `*who`; null: of all.
  void drop_ended(const instance_id* who) noexcept;
  /// Drops points that were waited for.
  void drop(const std::vector<event_handle>& waited) noexcept;
  /// Waits for all points. Failed work has ended too; its error is thrown to those who wait for it.
  void wait_ignoring_errors() noexcept;

 private:
  struct use_point {
    event_handle end;
    instance_id who;
    bool before_loan;
  };

  std::vector<use_point> uses_;
  std::size_t promised_ = 0;
  instance_id borrower_ = 0;
  bool lent_to_instance_ = false;
};

/// An object whose uses are recorded as in use_record. Thread-safe.
class used_object {
 public:
  used_object() = default;
  used_object(const used_object&) = delete;
  used_object& operator=(const used_object&) = delete;
  virtual ~used_object() = default;

  virtual void promise(bool writes) = 0;
  virtual void note(bool writes, event_handle end, instance_id who) noexcept = 0;
  virtual void withdraw(bool writes) noexcept = 0;
};

/// The deleter of a lease of a block_cache. It distinguishes leases from other resources.
struct block_return {
  std::shared_ptr<used_object> loan;
  void operator()(void*) noexcept { loan.reset(); }
};

/// The record of a lease's block, null if `resource` is not a lease of a block_cache. Verbs of several
/// threads may share a block. When the last owner drops the lease, the block returns to its cache, with the
/// uses that may still be in flight.
inline used_object* loan_of(const std::shared_ptr<void>& resource) noexcept {
  const auto* lease = std::get_deleter<block_return>(resource);
  return lease == nullptr ? nullptr : lease->loan.get();
}

}  // namespace ferry::detail
