// SPDX-License-Identifier: Apache-2.0
#include "page_ranges.hpp"

#include <ferry/error.hpp>

#include <cstdio>

namespace ferry::detail {

page_ranges::entry page_ranges::add(const std::string& label, const void* data, std::size_t bytes) {
  const std::lock_guard lock(guard_);
  return insert(label, data, bytes);
}

page_ranges::entry page_ranges::add_adopted(const std::string& label, const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(guard_);
  // All ranges are compared: there are few, and they may overlap each other.
  for (const auto& [address, range] : ranges_)
    if (begin < range.end && range.begin < begin + bytes)
      throw invalid_argument(joined("ferry::adopt: ", text(label, begin, begin + bytes), " overlap ",
                                    text(range.label, range.begin, range.end),
                                    ", which are page-locked already"));
  return insert(label, data, bytes);
}

void page_ranges::remove(entry range) noexcept {
  const std::lock_guard lock(guard_);
  auto place = ranges_.lower_bound(range->begin);
  while (&place->second != range) ++place;
  ranges_.erase(place);
}

page_ranges::entry page_ranges::insert(const std::string& label, const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return &ranges_.emplace(begin, page_range{begin, begin + bytes, label})->second;
}

std::string page_ranges::text(const std::string& label, std::uintptr_t begin, std::uintptr_t end) {
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(begin));
  return joined("the ", end - begin, " bytes of '", label, "' at ", address);
}

}  // namespace ferry::detail
