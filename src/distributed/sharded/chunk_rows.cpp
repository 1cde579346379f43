// SPDX-License-Identifier: Apache-2.0
#include "chunk_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ferry::detail {

void chunk_rows::locate(const row_spread& spread, std::uint64_t row_bytes, std::uint64_t offset,
                        std::size_t bytes, int rank) {
  row_bytes_ = row_bytes;
  skipped_ = offset % row_bytes;
  bytes_ = bytes;
  const auto first = static_cast<std::int64_t>(offset / row_bytes);
  const auto count = static_cast<std::size_t>((skipped_ + bytes + row_bytes - 1) / row_bytes);
  owners_.resize(count);
  places_.resize(count);
  if (spread.replicates()) {
    std::fill(owners_.begin(), owners_.end(), rank);
    for (std::size_t i = 0; i < count; ++i) places_[i] = first + static_cast<std::int64_t>(i);
  } else {
    spread.locate(first, owners_, places_);
  }
  bytes_of_rank_.assign(static_cast<std::size_t>(spread.ranks()), 0);
  for (std::size_t i = 1; i + 1 < count; ++i)
    bytes_of_rank_[static_cast<std::size_t>(owners_[i])] += row_bytes;
  bytes_of_rank_[static_cast<std::size_t>(owners_[0])] += bytes_of_row(0);
  if (count > 1) bytes_of_rank_[static_cast<std::size_t>(owners_[count - 1])] += bytes_of_row(count - 1);
}

void chunk_rows::reserve(std::size_t rows, int ranks) {
  owners_.reserve(rows);
  places_.reserve(rows);
  bytes_of_rank_.reserve(static_cast<std::size_t>(ranks));
}

std::vector<std::int64_t> chunk_rows::places_of(int rank) const {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < owners_.size(); ++i)
    if (owners_[i] == rank) places.push_back(places_[i]);
  return places;
}

void chunk_rows::join(std::vector<const std::byte*> parts, std::byte* chunk) const {
  for_each_owner([&](int owner, std::size_t count) {
    const std::byte*& next = parts[static_cast<std::size_t>(owner)];
    std::memcpy(chunk, next, count);
    next += count;
    chunk += count;
  });
}

void chunk_rows::part(const std::byte* chunk, std::vector<std::byte*>& parts) const {
  for_each_owner([&](int owner, std::size_t count) {
    std::byte*& next = parts[static_cast<std::size_t>(owner)];
    std::memcpy(next, chunk, count);
    next += count;
    chunk += count;
  });
}

}  // namespace ferry::detail
