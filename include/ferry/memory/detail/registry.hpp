// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
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
#include <vector>

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
  static std::shared_ptr<memory_registry> get();

  template <MemorySpace Space>
  ledger& of() {
    return of(Space::name);
  }
  [[gnu::cold]] ledger& of(std::string_view space);
  /// The accounts of all spaces by name. They live as long as the registry.
  [[nodiscard]] std::vector<ledger*> spaces() {
    const std::lock_guard lock(guard_);
    return ledgers_;
  }
  [[nodiscard]] page_ranges& pages() noexcept { return pages_; }

  /// Frees idle blocks of all spaces, or of one on all devices.
  [[gnu::cold]] std::size_t trim(in_flight effort, std::string_view space = {});

 private:
  std::mutex guard_;
  std::vector<ledger*> ledgers_;  // by name
  page_ranges pages_;
};

/// An allocation's entry in the accounts of its space, for its lifetime.
class memory_charge {
 public:
  memory_charge() = default;
  /// Claims the bytes. Throws budget_exceeded, and invalid_argument if Kokkos does not run. They count in the
  /// statistics after confirm().
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
  [[gnu::cold]] void confirm() noexcept;
  /// The accounts of the space.
  [[nodiscard]] ledger& books() const noexcept { return *ledger_; }

 private:
  [[gnu::cold]] void end() noexcept;

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
  [[gnu::cold]] void end() noexcept;

  std::shared_ptr<memory_registry> registry_;
  page_ranges::entry at_ = nullptr;
};

}  // namespace ferry::detail
