// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/memory_charge.hpp>

#include "registry.hpp"

#include <ferry/memory/detail/require_kokkos.hpp>

#include <utility>

namespace ferry::detail {

memory_charge::memory_charge(std::string_view space, const std::string& label, std::size_t bytes)
    : registry_(memory_registry::get()),
      ledger_(&registry_->ledger_of(space)),
      account_(&ledger_->claim(require_kokkos(label), bytes)),
      bytes_(bytes) {}

memory_charge::memory_charge(memory_charge&& source) noexcept
    : registry_(std::move(source.registry_)),
      ledger_(source.ledger_),
      account_(std::exchange(source.account_, nullptr)),
      bytes_(source.bytes_),
      confirmed_(source.confirmed_) {}

memory_charge& memory_charge::operator=(memory_charge&& source) noexcept {
  if (this == &source) return *this;
  end();
  registry_ = std::move(source.registry_);
  ledger_ = source.ledger_;
  account_ = std::exchange(source.account_, nullptr);
  bytes_ = source.bytes_;
  confirmed_ = source.confirmed_;
  return *this;
}

void memory_charge::confirm() noexcept {
  ledger_->confirm(*account_, bytes_);
  confirmed_ = true;
}

bool memory_charge::make_room() { return ledger_->make_room(~std::size_t{0}); }

std::string memory_charge::holdings() const { return ledger_->holdings(); }

void memory_charge::end() noexcept {
  if (account_ == nullptr) return;
  if (confirmed_)
    ledger_->close(*account_, bytes_);
  else
    ledger_->cancel(*account_, bytes_);
  account_ = nullptr;
}

page_lock_note::page_lock_note(const std::string& label, const void* data, std::size_t bytes)
    : registry_(memory_registry::get()), range_(registry_->pages().add(label, data, bytes)) {}

page_lock_note::page_lock_note(adopted, const std::string& label, const void* data, std::size_t bytes)
    : registry_(memory_registry::get()), range_(registry_->pages().add_adopted(label, data, bytes)) {}

page_lock_note::page_lock_note(page_lock_note&& source) noexcept
    : registry_(std::move(source.registry_)), range_(source.range_) {}

page_lock_note& page_lock_note::operator=(page_lock_note&& source) noexcept {
  if (this == &source) return *this;
  end();
  registry_ = std::move(source.registry_);
  range_ = source.range_;
  return *this;
}

void page_lock_note::end() noexcept {
  if (registry_ == nullptr) return;
  registry_->pages().remove(range_);
  registry_ = nullptr;
}

}  // namespace ferry::detail
