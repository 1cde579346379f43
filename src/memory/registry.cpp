// SPDX-License-Identifier: Apache-2.0
#include "registry.hpp"

#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <string>
#include <utility>

namespace ferry::detail {

std::shared_ptr<memory_registry> memory_registry::get() { return until_finalize<memory_registry>(); }

ledger& memory_registry::ledger_of(std::string_view space) {
  const std::lock_guard lock(guard_);
  const auto known = ledgers_.find(space);
  return known != ledgers_.end() ? known->second
                                 : ledgers_.try_emplace(std::string(space), space).first->second;
}

std::vector<ledger*> memory_registry::spaces() {
  const std::lock_guard lock(guard_);
  std::vector<ledger*> ledgers;
  for (auto& entry : ledgers_) ledgers.push_back(&entry.second);
  return ledgers;
}

std::size_t memory_registry::trim(in_flight effort, std::string_view space) {
  if (process_identity::get().has_lost_kokkos()) return 0;  // the blocks are the parent's
  const std::string on_devices = std::string(space).append(" of device ");
  std::size_t freed = 0;
  for (ledger* books : spaces())
    if (space.empty() || books->space() == space || books->space().starts_with(on_devices))
      freed += books->trim(~std::size_t{0}, effort);
  return freed;
}

}  // namespace ferry::detail
