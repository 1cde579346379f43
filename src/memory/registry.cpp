// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/registry.hpp>

namespace ferry::detail {

std::shared_ptr<memory_registry> memory_registry::get() { return until_finalize<memory_registry>(); }

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

std::size_t memory_registry::trim(in_flight effort, std::string_view space) {
  const std::string on_devices = std::string(space).append(" of device ");
  std::size_t freed = 0;
  for (ledger* books : spaces())
    if (space.empty() || books->space() == space || books->space().starts_with(on_devices))
      freed += books->trim(~std::size_t{0}, effort);
  return freed;
}

memory_charge::memory_charge(std::string_view space, const std::string& label, std::size_t bytes)
    : registry_(memory_registry::get()),
      ledger_(&registry_->of(space)),
      account_(&ledger_->claim(require_kokkos(label), bytes)),
      bytes_(bytes) {}

memory_charge::memory_charge(memory_charge&& other) noexcept
    : registry_(std::move(other.registry_)),
      ledger_(other.ledger_),
      account_(std::exchange(other.account_, nullptr)),
      bytes_(other.bytes_),
      confirmed_(other.confirmed_) {}

void memory_charge::confirm() noexcept {
  ledger_->confirm(*account_, bytes_);
  confirmed_ = true;
}

void memory_charge::end() noexcept {
  if (account_ == nullptr) return;
  if (confirmed_)
    ledger_->close(*account_, bytes_);
  else
    ledger_->cancel(*account_, bytes_);
  account_ = nullptr;
}

page_lock_note::page_lock_note(const std::string& label, const void* data, std::size_t bytes)
    : registry_(memory_registry::get()), at_(registry_->pages().add(label, data, bytes)) {}

page_lock_note::page_lock_note(adopted, const std::string& label, const void* data, std::size_t bytes)
    : registry_(memory_registry::get()), at_(registry_->pages().add_adopted(label, data, bytes)) {}

page_lock_note::page_lock_note(page_lock_note&& other) noexcept
    : registry_(std::move(other.registry_)), at_(other.at_) {}

void page_lock_note::end() noexcept {
  if (registry_ == nullptr) return;
  registry_->pages().remove(at_);
  registry_ = nullptr;
}

}  // namespace ferry::detail
