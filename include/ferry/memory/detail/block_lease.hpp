// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/use_record.hpp>

#include <memory>
#include <mutex>

namespace ferry::detail {

/// A block in use. Its destructor returns it to its pool, with the uses that may still be in flight: others
/// get the block as in block_cache::take. Thread-safe: verbs of several threads may share a block.
class block_loan : public used_object {
 public:
  block_loan(const block_loan&) = delete;
  block_loan& operator=(const block_loan&) = delete;

  void promise(bool writes) override;
  void note(bool writes, event_handle end, instance_id who) noexcept override;
  void withdraw(bool writes) noexcept override;

 protected:
  explicit block_loan(use_record& uses) : uses_(uses) {}

 private:
  std::mutex guard_;
  use_record& uses_;
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

}  // namespace ferry::detail
