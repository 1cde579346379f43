// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace ferry::detail {

struct page_range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string label;
};

/// The page-locked ranges that ferry knows of: its own tables and adopted memory. Thread-safe.
class page_ranges {
 public:
  using entry = page_range*;

  page_ranges() = default;
  page_ranges(const page_ranges&) = delete;
  page_ranges& operator=(const page_ranges&) = delete;
  ~page_ranges() = default;

  /// Adds memory of ferry. It is new from the system, so it can't overlap.
  entry add(const std::string& label, const void* data, std::size_t bytes);

  /// Adds memory of the user. Throws invalid_argument if it overlaps a known range.
  entry add_adopted(const std::string& label, const void* data, std::size_t bytes);

  void remove(entry range) noexcept;

 private:
  entry insert(const std::string& label, const void* data, std::size_t bytes);

  static std::string text(const std::string& label, std::uintptr_t begin, std::uintptr_t end);

  std::mutex guard_;
  std::multimap<std::uintptr_t, page_range> ranges_;  // by address
};

}  // namespace ferry::detail
