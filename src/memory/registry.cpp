// SPDX-License-Identifier: Apache-2.0
#include "registry.hpp"

#include <ferry/memory/detail/until_finalize.hpp>

#include <string>
#include <utility>

namespace ferry::detail {

std::shared_ptr<memory_registry> memory_registry::get() { return until_finalize<memory_registry>(); }

memory_registry::~memory_registry() {
  for (const ledger* books : ledgers_) delete books;
}

ledger& memory_registry::of(std::string_view space) {
  const std::lock_guard lock(guard_);
  std::size_t place = 0;
  while (place < ledgers_.size() && ledgers_[place]->space() < space) ++place;
  if (place < ledgers_.size() && ledgers_[place]->space() == space) return *ledgers_[place];
  ledgers_.reserve(ledgers_.size() + 1);
  ledgers_.push_back(new ledger(space));
  for (std::size_t at = ledgers_.size() - 1; at > place; --at) std::swap(ledgers_[at], ledgers_[at - 1]);
  return *ledgers_[place];
}

std::vector<ledger*> memory_registry::spaces() {
  const std::lock_guard lock(guard_);
  return ledgers_;
}

std::size_t memory_registry::trim(in_flight effort, std::string_view space) {
  const std::string on_devices = std::string(space).append(" of device ");
  std::size_t freed = 0;
  for (ledger* books : spaces())
    if (space.empty() || books->space() == space || books->space().starts_with(on_devices))
      freed += books->trim(~std::size_t{0}, effort);
  return freed;
}

}  // namespace ferry::detail
