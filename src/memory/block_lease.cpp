// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/block_lease.hpp>

namespace ferry::detail {

void block_loan::promise() {
  const std::lock_guard lock(guard_);
  make_room();
  ++promised_;
}

void block_loan::withdraw() noexcept {
  const std::lock_guard lock(guard_);
  --promised_;
}

void block_loan::used_as_promised(event_handle done, instance_id who) noexcept {
  const std::lock_guard lock(guard_);
  --promised_;
  note(std::move(done), who);
}

void block_loan::used_until(event_handle done, instance_id who) {
  const std::lock_guard lock(guard_);
  make_room();
  note(std::move(done), who);
}

void block_loan::make_room() {
  uses.reserve(uses.size() + promised_ + 1);
  inherited.reserve(inherited.size() + uses.size() + promised_ + 1);
}

void block_loan::note(event_handle done, instance_id who) noexcept {
  if (ordered && taker == who) inherited.clear();
  std::erase_if(uses, [who](const block_use& use) { return use.who == who; });
  if (done != nullptr) uses.push_back({std::move(done), who});
}

}  // namespace ferry::detail
