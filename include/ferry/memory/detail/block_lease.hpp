// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/use_record.hpp>

#include <memory>

namespace ferry::detail {

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
