// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ferry::detail {

class ledger;
class memory_registry;
struct memory_account;
struct page_range;

/// An allocation's entry in the accounts of its space, for its lifetime.
class memory_charge {
 public:
  memory_charge() = default;
  /// Claims the bytes. Throws budget_exceeded, and invalid_argument if Kokkos does not run. They count in the
  /// statistics after confirm().
  memory_charge(std::string_view space, const std::string& label, std::size_t bytes);
  memory_charge(memory_charge&& source) noexcept;
  memory_charge& operator=(memory_charge&& source) noexcept;
  ~memory_charge() { end(); }

  /// Records that the memory was allocated.
  void confirm() noexcept;
  /// Returns idle blocks of the space to the system. False if there are none.
  bool make_room();
  /// The bytes that the space holds, for messages.
  [[nodiscard]] std::string holdings() const;

 private:
  void end() noexcept;

  std::shared_ptr<memory_registry> registry_;
  ledger* ledger_ = nullptr;
  memory_account* account_ = nullptr;
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
  page_lock_note(page_lock_note&& source) noexcept;
  page_lock_note& operator=(page_lock_note&& source) noexcept;
  ~page_lock_note() { end(); }

 private:
  void end() noexcept;

  std::shared_ptr<memory_registry> registry_;
  page_range* range_ = nullptr;
};

}  // namespace ferry::detail
