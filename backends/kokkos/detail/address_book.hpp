// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace ferry::kokkos {

/// The memory that the backend has allocated, by address: Kokkos does not tell the space of an address.
/// Thread-safe. Never destroyed, because memory may be freed after Kokkos::finalize.
class address_book {
 public:
  static address_book& get() {
    static address_book& book = detail::process_wide<address_book>();
    return book;
  }

  void add(const void* data, std::size_t bytes, memory_kind kind) {
    const std::lock_guard lock(guard_);
    blocks_.insert_or_assign(reinterpret_cast<std::uintptr_t>(data), block{bytes, kind});
  }
  void remove(const void* data) noexcept {
    const std::lock_guard lock(guard_);
    blocks_.erase(reinterpret_cast<std::uintptr_t>(data));
  }
  /// Nothing for memory of others.
  [[nodiscard]] std::optional<memory_kind> find(const void* data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::lock_guard lock(guard_);
    auto next = blocks_.upper_bound(address);
    if (next == blocks_.begin()) return std::nullopt;
    --next;
    if (address - next->first >= next->second.bytes) return std::nullopt;
    return next->second.kind;
  }

 private:
  struct block {
    std::size_t bytes;
    memory_kind kind;
  };

  std::mutex guard_;
  std::map<std::uintptr_t, block> blocks_;
};

}  // namespace ferry::kokkos
