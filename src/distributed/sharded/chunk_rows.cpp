// SPDX-License-Identifier: Apache-2.0
#include "chunk_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ferry::detail {

void chunk_rows::locate(const row_spread& spread, std::uint64_t row_bytes, std::uint64_t offset,
                        std::size_t bytes, int here) {
  row_bytes_ = row_bytes;
  skipped_ = offset % row_bytes;
  bytes_ = bytes;
  const auto first = static_cast<std::int64_t>(offset / row_bytes);
  const auto count = static_cast<std::size_t>((skipped_ + bytes + row_bytes - 1) / row_bytes);
  owners_.resize(count);
  places_.resize(count);
  if (spread.replicates()) {
    std::fill(owners_.begin(), owners_.end(), here);
    for (std::size_t i = 0; i < count; ++i) places_[i] = first + static_cast<std::int64_t>(i);
  } else {
    spread.locate(first, owners_, places_);
  }
  held_.assign(static_cast<std::size_t>(spread.ranks()), 0);
  for (std::size_t i = 1; i + 1 < count; ++i) held_[static_cast<std::size_t>(owners_[i])] += row_bytes;
  held_[static_cast<std::size_t>(owners_[0])] += bytes_of_row(0);
  if (count > 1) held_[static_cast<std::size_t>(owners_[count - 1])] += bytes_of_row(count - 1);
}

void chunk_rows::reserve(std::size_t rows, int ranks) {
  owners_.reserve(rows);
  places_.reserve(rows);
  held_.reserve(static_cast<std::size_t>(ranks));
}

std::vector<std::int64_t> chunk_rows::places_of(int rank) const {
  std::vector<std::int64_t> made;
  for (std::size_t i = 0; i < owners_.size(); ++i)
    if (owners_[i] == rank) made.push_back(places_[i]);
  return made;
}

void chunk_rows::join(std::vector<const std::byte*> from, std::byte* to) const {
  for_each_owner([&](int owner, std::size_t count) {
    const std::byte*& at = from[static_cast<std::size_t>(owner)];
    std::memcpy(to, at, count);
    at += count;
    to += count;
  });
}

void chunk_rows::part(const std::byte* from, std::vector<std::byte*>& to) const {
  for_each_owner([&](int owner, std::size_t count) {
    std::byte*& at = to[static_cast<std::size_t>(owner)];
    std::memcpy(at, from, count);
    at += count;
    from += count;
  });
}

}  // namespace ferry::detail
