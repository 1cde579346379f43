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

/// Closes an entry, or cancels it.
struct charge_end {
  std::shared_ptr<memory_registry> registry;
  ledger* books = nullptr;
  std::size_t bytes = 0;
  bool confirmed = false;
  void operator()(memory_account* account) const noexcept;
};

/// An allocation's entry in the accounts of its space, for its lifetime.
class memory_charge {
 public:
  memory_charge() = default;
  /// Claims the bytes. Throws budget_exceeded, and invalid_argument if Kokkos does not run. They count in the
  /// statistics after confirm().
  memory_charge(std::string_view space, const std::string& label, std::size_t bytes);

  /// Records that the memory was allocated.
  void confirm() noexcept;
  /// Moves a confirmed entry to another label.
  void move_to(const std::string& label);
  /// Returns idle blocks of the space to the system. False if there are none, and none were freed since
  /// freed_bytes() was `freed_before`.
  bool make_room(std::size_t freed_before);
  /// Bytes of idle blocks of the space that were freed so far.
  [[nodiscard]] std::size_t freed_bytes() const;
  /// The bytes that the space holds, for messages.
  [[nodiscard]] std::string holdings() const;

 private:
  std::unique_ptr<memory_account, charge_end> account_;
};

}  // namespace ferry::detail
