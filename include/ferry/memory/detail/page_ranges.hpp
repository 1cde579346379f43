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

/// The page-locked ranges that ferry knows of: its own tables and adopted memory. Thread-safe.
class page_ranges {
 public:
  struct range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::string label;
    range* before = nullptr;
    range* next = nullptr;
  };
  using entry = range*;

  page_ranges() = default;
  page_ranges(const page_ranges&) = delete;
  page_ranges& operator=(const page_ranges&) = delete;
  ~page_ranges() {
    while (first_ != nullptr) remove(first_);
  }

  /// Adds memory of ferry. It is new from the system, so it can't overlap.
  FERRY_LAZY [[gnu::cold]] entry add(const std::string& label, const void* data, std::size_t bytes);

  /// Adds memory of the user. Throws invalid_argument where it overlaps a known range.
  FERRY_LAZY [[gnu::cold]] entry add_adopted(const std::string& label, const void* data, std::size_t bytes);

  FERRY_LAZY [[gnu::cold]] void remove(entry which) noexcept;

 private:
  FERRY_LAZY [[gnu::cold]] entry insert(const std::string& label, const void* data, std::size_t bytes);

  FERRY_LAZY [[gnu::cold]] static std::string text(const std::string& label, std::uintptr_t begin,
                                                   std::uintptr_t end);

  std::mutex guard_;
  range* first_ = nullptr;  // by address
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY page_ranges::entry page_ranges::add(const std::string& label, const void* data,
                                               std::size_t bytes) {
  const std::lock_guard lock(guard_);
  return insert(label, data, bytes);
}

FERRY_LAZY page_ranges::entry page_ranges::add_adopted(const std::string& label, const void* data,
                                                       std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(guard_);
  // All ranges are compared: there are few, and they may overlap each other.
  for (const range* other = first_; other != nullptr; other = other->next)
    if (begin < other->end && other->begin < begin + bytes)
      throw invalid_argument(
          joined({"ferry::adopt: ", text(label, begin, begin + bytes), " overlap ",
                  text(other->label, other->begin, other->end), ", which are page-locked already"}));
  return insert(label, data, bytes);
}

FERRY_LAZY void page_ranges::remove(entry which) noexcept {
  const std::lock_guard lock(guard_);
  (which->before == nullptr ? first_ : which->before->next) = which->next;
  if (which->next != nullptr) which->next->before = which->before;
  delete which;
}

FERRY_LAZY page_ranges::entry page_ranges::insert(const std::string& label, const void* data,
                                                  std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  auto* const made = new range{begin, begin + bytes, label, nullptr, first_};
  while (made->next != nullptr && made->next->begin <= begin) {
    made->before = made->next;
    made->next = made->next->next;
  }
  (made->before == nullptr ? first_ : made->before->next) = made;
  if (made->next != nullptr) made->next->before = made;
  return made;
}

FERRY_LAZY std::string page_ranges::text(const std::string& label, std::uintptr_t begin, std::uintptr_t end) {
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(begin));
  return joined({"the ", end - begin, " bytes of '", label, "' at ", address});
}

#endif

}  // namespace ferry::detail
