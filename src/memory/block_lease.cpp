// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/block_lease.hpp>

#include <mutex>
#include <utility>

namespace ferry::detail {

void block_loan::promise(bool) {
  const std::lock_guard lock(guard_);
  uses_.promise();
}

void block_loan::note(bool, event_handle end, instance_id who) noexcept {
  const std::lock_guard lock(guard_);
  uses_.note(std::move(end), who);
}

void block_loan::withdraw(bool) noexcept {
  const std::lock_guard lock(guard_);
  uses_.withdraw();
}

}  // namespace ferry::detail
