// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace ferry::detail {

/// A range in a list.
struct page_range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string label;
  page_range* before = nullptr;
  page_range* next = nullptr;
};

/// The page-locked ranges that ferry knows of: its own tables and adopted memory. Thread-safe.
class page_ranges {
 public:
  using entry = page_range*;

  page_ranges() = default;
  page_ranges(const page_ranges&) = delete;
  page_ranges& operator=(const page_ranges&) = delete;
  ~page_ranges() {
    while (first_ != nullptr) remove(first_);
  }

  /// Adds memory of ferry. It is new from the system, so it can't overlap.
  entry add(const std::string& label, const void* data, std::size_t bytes);

  /// Adds memory of the user. Throws invalid_argument where it overlaps a known range.
  entry add_adopted(const std::string& label, const void* data, std::size_t bytes);

  void remove(entry which) noexcept;

 private:
  entry insert(const std::string& label, const void* data, std::size_t bytes);

  static std::string text(const std::string& label, std::uintptr_t begin, std::uintptr_t end);

  std::mutex guard_;
  page_range* first_ = nullptr;  // by address
};

}  // namespace ferry::detail
