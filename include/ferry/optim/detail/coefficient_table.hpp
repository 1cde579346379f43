// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>

namespace ferry::optim::detail {

/// A table's entries in a device's memory. A sender holds the guard until the memory's accesses include the
/// end of its copy, so that readers in other threads are ordered after the copy.
struct device_copy {
  std::mutex guard;
  std::shared_ptr<tensor<std::byte, device_space>> memory;
  std::size_t sent = 0;  ///< bytes
};

/// The first entries of a table. They do not change while a view exists.
struct table_view {
  std::shared_ptr<const std::byte[]> entries;
  std::shared_ptr<device_copy> on_device;
  std::size_t bytes = 0;
  std::int64_t first = 1;  ///< step of the first entry
  std::int64_t count = 0;
};

/// A growing array of trivially copyable entries of one type. The host makes and keeps the entries, and
/// uploads those that a device needs. The owner locks. Entries are added at the end, beyond all views. A
/// longer array replaces a full one, which existing views keep.
class coefficient_table {
 public:
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Bytes of host memory.
  [[nodiscard]] std::size_t bytes() const { return capacity_; }

  template <class Entry>
  void push(const Entry& next) {
    static_assert(
        std::is_trivially_copyable_v<Entry> && alignof(Entry) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
        "ferry: what a rule gives for a step is copied byte by byte, so it must be trivially copyable and not aligned to more than operator new is.");
    std::memcpy(add(sizeof next), &next, sizeof next);
  }

  /// Keeps the first `count` entries.
  void truncate(std::int64_t count);

  /// Frees the memory, except a small device allocation, since allocating it again would make the device
  /// wait. Returns the rest of the device's memory, which the caller must release without holding its lock: a
  /// user's allocation callback may need that lock.
  [[nodiscard]] std::shared_ptr<void> clear();

  [[nodiscard]] table_view view(std::int64_t first, std::int64_t count);

 private:
  static constexpr std::size_t kept_on_device = 65536;

  [[nodiscard]] std::size_t bytes_of(std::int64_t count) const;
  /// The place of one more entry.
  std::byte* add(std::size_t entry_bytes);

  std::shared_ptr<std::byte[]> entries_;
  std::size_t capacity_ = 0;
  std::size_t entry_bytes_ = 0;
  std::int64_t size_ = 0;
  bool cut_ = false;  ///< true if views may reach beyond the end
  std::shared_ptr<device_copy> on_device_;
};

}  // namespace ferry::optim::detail
