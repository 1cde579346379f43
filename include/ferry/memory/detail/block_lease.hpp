// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/event.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Work of instance `who` that uses a block until `done`.
struct block_use {
  event_handle done;
  instance_id who = 0;
};

/// A block in use. Its destructor returns it to its pool, with the uses that may still be in flight.
/// Thread-safe: verbs of several threads may share a block.
class block_loan {
 public:
  block_loan() = default;
  block_loan(const block_loan&) = delete;
  block_loan& operator=(const block_loan&) = delete;
  virtual ~block_loan() = default;

  /// Reserves memory for a use before its work is enqueued, so that used_as_promised() can't fail. withdraw()
  /// cancels the reservation.
  FERRY_LAZY void promise();
  FERRY_LAZY void withdraw() noexcept;
  /// Records `done`, an event of instance `who` after all of its uses so far; null where they have ended. An
  /// event of the taker also comes after the inherited uses, because the taker was ordered after them.
  FERRY_LAZY void used_as_promised(event_handle done, instance_id who) noexcept;
  FERRY_LAZY void used_until(event_handle done, instance_id who);

 protected:
  dynamic_array<block_use> inherited;  ///< of earlier loans
  dynamic_array<block_use> uses;       ///< of this loan
  instance_id taker = 0;
  bool ordered = false;  ///< whether `taker` is known

 private:
  // At its end, the loan appends the uses to the inherited ones, which must not fail.
  FERRY_LAZY void make_room();
  FERRY_LAZY void note(event_handle done, instance_id who) noexcept;

  std::mutex guard_;
  std::size_t promised_ = 0;
};

/// The deleter of a lease. It distinguishes leases from other resources.
struct block_return {
  std::shared_ptr<block_loan> loan;
  void operator()(void*) noexcept { loan.reset(); }
};

/// The loan of a lease, or null where `resource` is not a lease of a block_cache.
inline block_loan* loan_of(const std::shared_ptr<void>& resource) noexcept {
  const auto* lease = std::get_deleter<block_return>(resource);
  return lease == nullptr ? nullptr : lease->loan.get();
}

/// Records that work of instance `who` uses the block of a lease until `done`; null where it has ended. When
/// the last owner drops the lease, the block returns to its cache at once, and others get it as in
/// block_cache::take. Does nothing and returns false where `resource` is not such a lease.
inline bool note_use(const std::shared_ptr<void>& resource, event_handle done, instance_id who) {
  detail::block_loan* const loan = detail::loan_of(resource);
  if (loan == nullptr) return false;
  loan->used_until(std::move(done), who);
  return true;
}

/// Returns a lease of a block_cache while work of instance `who` still uses the block. Others get the block
/// as in block_cache::take. `done` is an event after that work, null where it has ended. Copies of the lease
/// keep the block until the last one is dropped. Does nothing and returns false where `resource` is not such
/// a lease. Not for several threads on one lease.
inline bool release_behind(std::shared_ptr<void>& resource, event_handle done, instance_id who) {
  if (!note_use(resource, std::move(done), who)) return false;
  resource.reset();
  return true;
}

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY void block_loan::promise() {
  const std::lock_guard lock(guard_);
  make_room();
  ++promised_;
}

FERRY_LAZY void block_loan::withdraw() noexcept {
  const std::lock_guard lock(guard_);
  --promised_;
}

FERRY_LAZY void block_loan::used_as_promised(event_handle done, instance_id who) noexcept {
  const std::lock_guard lock(guard_);
  --promised_;
  note(std::move(done), who);
}

FERRY_LAZY void block_loan::used_until(event_handle done, instance_id who) {
  const std::lock_guard lock(guard_);
  make_room();
  note(std::move(done), who);
}

FERRY_LAZY void block_loan::make_room() {
  uses.reserve(uses.size() + promised_ + 1);
  inherited.reserve(inherited.size() + uses.size() + promised_ + 1);
}

FERRY_LAZY void block_loan::note(event_handle done, instance_id who) noexcept {
  if (ordered && taker == who) inherited.clear();
  uses.erase_if([who](const block_use& use) { return use.who == who; });
  if (done != nullptr) uses.push_reserved({std::move(done), who});
}

#endif

}  // namespace ferry::detail
