// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/idle_memory.hpp>
#include <ferry/memory/detail/ledger.hpp>
#include <ferry/memory/detail/page_ranges.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>
#include <ferry/memory/detail/until_finalize.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// The accounts of all memory spaces. Every live allocation shares it, so one that outlives Kokkos::finalize
/// still closes its own account.
class memory_registry {
 public:
  memory_registry() = default;
  memory_registry(const memory_registry&) = delete;
  memory_registry& operator=(const memory_registry&) = delete;
  ~memory_registry() {
    for (const ledger* books : ledgers_) delete books;
  }
  FERRY_LAZY static std::shared_ptr<memory_registry> get();

  template <MemorySpace Space>
  ledger& of() {
    return of(Space::name);
  }
  FERRY_LAZY [[gnu::cold]] ledger& of(std::string_view space);
  /// The accounts of all spaces by name. They live as long as the registry.
  [[nodiscard]] dynamic_array<ledger*> spaces() {
    const std::lock_guard lock(guard_);
    return ledgers_;
  }
  [[nodiscard]] page_ranges& pages() noexcept { return pages_; }

  /// Frees idle blocks of all spaces, or of one on all devices.
  FERRY_LAZY [[gnu::cold]] std::size_t trim(in_flight effort, std::string_view space = {});

 private:
  std::mutex guard_;
  dynamic_array<ledger*> ledgers_;  // by name
  page_ranges pages_;
};

/// An allocation's entry in the accounts of its space, for its lifetime.
class memory_charge {
 public:
  memory_charge() = default;
  /// Claims the bytes, or throws budget_exceeded, and invalid_argument where Kokkos does not run. They count in the statistics after confirm().
  memory_charge(std::string_view space, const std::string& label, std::size_t bytes);
  memory_charge(memory_charge&& other) noexcept;
  memory_charge& operator=(memory_charge&& other) noexcept {
    if (this == &other) return *this;
    end();
    registry_ = std::move(other.registry_);
    ledger_ = other.ledger_;
    account_ = std::exchange(other.account_, nullptr);
    bytes_ = other.bytes_;
    confirmed_ = other.confirmed_;
    return *this;
  }
  ~memory_charge() { end(); }

  /// Records that the memory was allocated.
  FERRY_LAZY [[gnu::cold]] void confirm() noexcept;
  /// The accounts of the space.
  [[nodiscard]] ledger& books() const noexcept { return *ledger_; }

 private:
  FERRY_LAZY [[gnu::cold]] void end() noexcept;

  std::shared_ptr<memory_registry> registry_;
  ledger* ledger_ = nullptr;
  ledger::account* account_ = nullptr;
  std::size_t bytes_ = 0;
  bool confirmed_ = false;
};

/// A page-locked range's entry in the registry, for its lifetime.
class page_lock_note {
 public:
  struct adopted {};

  page_lock_note() = default;
  page_lock_note(const std::string& label, const void* data, std::size_t bytes);
  /// For adopted memory. Throws invalid_argument where the range overlaps another one.
  page_lock_note(adopted, const std::string& label, const void* data, std::size_t bytes);
  page_lock_note(page_lock_note&& other) noexcept;
  page_lock_note& operator=(page_lock_note&& other) noexcept {
    if (this == &other) return *this;
    end();
    registry_ = std::move(other.registry_);
    at_ = other.at_;
    return *this;
  }
  ~page_lock_note() { end(); }

 private:
  FERRY_LAZY [[gnu::cold]] void end() noexcept;

  std::shared_ptr<memory_registry> registry_;
  page_ranges::entry at_ = nullptr;
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY std::shared_ptr<memory_registry> memory_registry::get() {
  return until_finalize<memory_registry>();
}

FERRY_LAZY ledger& memory_registry::of(std::string_view space) {
  const std::lock_guard lock(guard_);
  std::size_t place = 0;
  while (place < ledgers_.size() && ledgers_[place]->space() < space) ++place;
  if (place < ledgers_.size() && ledgers_[place]->space() == space) return *ledgers_[place];
  ledgers_.reserve(ledgers_.size() + 1);
  ledgers_.push_back(new ledger(space));
  for (std::size_t at = ledgers_.size() - 1; at > place; --at) std::swap(ledgers_[at], ledgers_[at - 1]);
  return *ledgers_[place];
}

FERRY_LAZY std::size_t memory_registry::trim(in_flight effort, std::string_view space) {
  const std::string on_devices = std::string(space).append(" of device ");
  std::size_t freed = 0;
  for (ledger* books : spaces())
    if (space.empty() || books->space() == space || books->space().starts_with(on_devices))
      freed += books->trim(~std::size_t{0}, effort);
  return freed;
}

FERRY_INLINE memory_charge::memory_charge(std::string_view space, const std::string& label, std::size_t bytes)
    : registry_(memory_registry::get()),
      ledger_(&registry_->of(space)),
      account_(&ledger_->claim(require_kokkos(label), bytes)),
      bytes_(bytes) {}

FERRY_INLINE memory_charge::memory_charge(memory_charge&& other) noexcept
    : registry_(std::move(other.registry_)),
      ledger_(other.ledger_),
      account_(std::exchange(other.account_, nullptr)),
      bytes_(other.bytes_),
      confirmed_(other.confirmed_) {}

FERRY_LAZY void memory_charge::confirm() noexcept {
  ledger_->confirm(*account_, bytes_);
  confirmed_ = true;
}

FERRY_LAZY void memory_charge::end() noexcept {
  if (account_ == nullptr) return;
  if (confirmed_)
    ledger_->close(*account_, bytes_);
  else
    ledger_->cancel(*account_, bytes_);
  account_ = nullptr;
}

FERRY_INLINE page_lock_note::page_lock_note(const std::string& label, const void* data, std::size_t bytes)
    : registry_(memory_registry::get()), at_(registry_->pages().add(label, data, bytes)) {}

FERRY_INLINE page_lock_note::page_lock_note(adopted, const std::string& label, const void* data,
                                            std::size_t bytes)
    : registry_(memory_registry::get()), at_(registry_->pages().add_adopted(label, data, bytes)) {}

FERRY_INLINE page_lock_note::page_lock_note(page_lock_note&& other) noexcept
    : registry_(std::move(other.registry_)), at_(other.at_) {}

FERRY_LAZY void page_lock_note::end() noexcept {
  if (registry_ == nullptr) return;
  registry_->pages().remove(at_);
  registry_ = nullptr;
}

#endif

}  // namespace ferry::detail
