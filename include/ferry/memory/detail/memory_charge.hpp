// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ferry::detail {

/// Blocks that work in flight still uses are left alone, or waited for.
enum class in_flight { skip, wait };

/// The idle blocks of a pool, as a source of memory for others. Thread-safe.
class idle_memory {
 public:
  idle_memory() = default;
  idle_memory(const idle_memory&) = delete;
  idle_memory& operator=(const idle_memory&) = delete;
  virtual ~idle_memory() = default;

  [[nodiscard]] virtual std::size_t idle_bytes() const = 0;

  /// Returns blocks to the system until `enough` bytes are freed or none is left. The result is the bytes
  /// freed.
  virtual std::size_t trim(std::size_t enough, in_flight effort) = 0;

  /// The pool has ended: waits for the work that uses its idle blocks, and frees them.
  virtual void close() noexcept = 0;
};

/// True if the space of an account holds no more than its budget.
[[nodiscard]] bool is_within_budget(std::string_view account);
/// Allocations of the space of an account free blocks of the pool before they exceed the budget.
void add_idle_memory(std::string_view account, std::weak_ptr<idle_memory> pool);

/// Bytes that the system can give without taking them from somebody: those that are available on the machine,
/// and in the control groups of this process (of either version). The system would rather end processes than
/// refuse pages.
[[nodiscard]] std::int64_t available_bytes();

struct memory_entry;

/// An allocation's entry in the accounts of its space, for its lifetime.
class memory_charge {
 public:
  memory_charge() = default;
  /// Reserves the bytes. Throws budget_exceeded, and invalid_argument if Kokkos does not run. They count in
  /// the statistics after confirm().
  memory_charge(std::string_view space, const std::string& label, std::size_t bytes);

  /// False for none, and for one that was moved.
  [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }
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
  std::shared_ptr<memory_entry> entry_;  ///< with this owner alone
};

}  // namespace ferry::detail
