// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/rows_once.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

void different_rows::add(const std::int64_t* list, std::int64_t first, std::int64_t last) {
  sorted_.clear();
  for (std::int64_t i = first; i < last; ++i) sorted_.push_back({list[i], place_of.size() + sorted_.size()});
  sort();
  place_of.resize(place_of.size() + sorted_.size());
  const std::size_t first_place = rows.size();
  for (const auto& [row, element] : sorted_) {
    if (rows.size() == first_place || rows.back() != row) rows.push_back(row);
    place_of[element] = static_cast<std::int64_t>(rows.size()) - 1;
  }
  begin.push_back(static_cast<std::int64_t>(rows.size()));
}

void different_rows::sort() {
  std::int64_t bits = 0;
  for (const entry& element_entry : sorted_) bits |= element_entry.row;
  rest_.resize(sorted_.size());
  for (int shift = 0; shift < 63 && (bits >> shift) != 0; shift += 11) {
    const auto digit = [shift](const entry& digit_entry) {
      return static_cast<std::size_t>(digit_entry.row >> shift) & 2047;
    };
    std::array<std::size_t, 2049> place{};
    for (const entry& element_entry : sorted_) ++place[digit(element_entry) + 1];
    for (std::size_t d = 0; d < 2048; ++d) place[d + 1] += place[d];
    for (const entry& element_entry : sorted_) rest_[place[digit(element_entry)]++] = element_entry;
    sorted_.swap(rest_);
  }
}

}  // namespace ferry::detail
