// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

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
  void promise();
  void withdraw() noexcept;
  /// Records `done`, an event of instance `who` after all of its uses so far; null where they have ended. An
  /// event of the taker also comes after the inherited uses, because the taker was ordered after them.
  void used_as_promised(event_handle done, instance_id who) noexcept;
  void used_until(event_handle done, instance_id who);

 protected:
  std::vector<block_use> inherited;  ///< of earlier loans
  std::vector<block_use> uses;       ///< of this loan
  instance_id taker = 0;
  bool ordered = false;  ///< whether `taker` is known

 private:
  // At its end, the loan appends the uses to the inherited ones, which must not fail.
  void make_room();
  void note(event_handle done, instance_id who) noexcept;

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

}  // namespace ferry::detail
