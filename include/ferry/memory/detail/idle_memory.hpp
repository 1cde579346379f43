// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
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

}  // namespace ferry::detail
