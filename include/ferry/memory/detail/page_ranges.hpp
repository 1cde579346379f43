// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace ferry::detail {

/// The page-locked ranges that ferry knows of: its own tables and adopted memory. Thread-safe.
class page_ranges {
 public:
  struct range {
    std::uintptr_t end = 0;
    std::string label;
  };
  using entry = std::multimap<std::uintptr_t, range>::iterator;

  /// Adds memory of ferry. It is new from the system, so it can't overlap.
  entry add(const std::string& label, const void* data, std::size_t bytes);

  /// Adds memory of the user. Throws invalid_argument where it overlaps a known range.
  entry add_adopted(const std::string& label, const void* data, std::size_t bytes);

  void remove(entry which) noexcept;

 private:
  entry insert(const std::string& label, const void* data, std::size_t bytes);

  static std::string text(const std::string& label, std::uintptr_t begin, std::uintptr_t end);

  std::mutex guard_;
  std::multimap<std::uintptr_t, range> ranges_;
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_INLINE page_ranges::entry page_ranges::add(const std::string& label, const void* data,
                                                 std::size_t bytes) {
  const std::lock_guard lock(guard_);
  return insert(label, data, bytes);
}

FERRY_INLINE page_ranges::entry page_ranges::add_adopted(const std::string& label, const void* data,
                                                         std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(guard_);
  // All ranges are compared: there are few, and they may overlap each other.
  for (const auto& [there, other] : ranges_)
    if (begin < other.end && there < begin + bytes)
      throw invalid_argument("ferry::adopt: " + text(label, begin, begin + bytes) + " overlap " +
                             text(other.label, there, other.end) + ", which are page-locked already");
  return insert(label, data, bytes);
}

FERRY_INLINE void page_ranges::remove(entry which) noexcept {
  const std::lock_guard lock(guard_);
  ranges_.erase(which);
}

FERRY_INLINE page_ranges::entry page_ranges::insert(const std::string& label, const void* data,
                                                    std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return ranges_.emplace(begin, range{begin + bytes, label});
}

FERRY_INLINE std::string page_ranges::text(const std::string& label, std::uintptr_t begin,
                                           std::uintptr_t end) {
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(begin));
  return "the " + std::to_string(end - begin) + " bytes of '" + label + "' at " + address;
}

#endif

}  // namespace ferry::detail
