// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/row_spread.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::detail {

/// The places of the rows of a piece of a file: bytes [offset, offset + bytes) of an array in the order of
/// the row numbers. The first and the last row may be cut.
class chunk_rows {
 public:
  /// Finds the rows of a piece; among replicas those of `rank`.
  void locate(const row_spread& spread, std::uint64_t row_bytes, std::uint64_t offset, std::size_t bytes,
              int rank);

  /// Takes the memory for locate() of at most `rows` rows.
  void reserve(std::size_t rows, int ranks);
  /// Forgets the rows, and keeps their memory.
  void clear() {
    owners_.clear();
    places_.clear();
  }
  /// Number of rows.
  [[nodiscard]] std::size_t rows() const { return owners_.size(); }
  /// The bytes that a rank has.
  [[nodiscard]] std::size_t bytes_of(int rank) const {
    return bytes_of_rank_[static_cast<std::size_t>(rank)];
  }
  /// The places of the rows that a rank has, in their order.
  [[nodiscard]] std::vector<std::int64_t> places_of(int rank) const;
  /// True if no row is cut.
  [[nodiscard]] bool is_whole() const { return skipped_ == 0 && bytes_ % row_bytes_ == 0; }

  /// Calls visit(first byte in the shard, count) for the runs of bytes of a rank that are adjacent in its
  /// shard, in the order of the rows.
  template <class Visit>
  void for_each_run(int rank, const Visit& visit) const {
    std::uint64_t begin = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i] != rank) continue;
      const std::uint64_t row = static_cast<std::uint64_t>(places_[i]) * row_bytes_ + (i == 0 ? skipped_ : 0);
      if (count != 0 && begin + count != row) {
        visit(begin, count);
        count = 0;
      }
      if (count == 0) begin = row;
      count += bytes_of_row(i);
    }
    if (count != 0) visit(begin, count);
  }

  /// chunk = the rows in the order of their numbers, of which owner r has its own one after the other at
  /// parts[r].
  void join(std::vector<const std::byte*> parts, std::byte* chunk) const;
  /// The other way round; moves the pointers on.
  void part(const std::byte* chunk, std::vector<std::byte*>& parts) const;

 private:
  [[nodiscard]] std::size_t bytes_of_row(std::size_t i) const {
    const std::uint64_t end = skipped_ + bytes_;  // counted from the beginning of the first row
    const std::uint64_t first = i == 0 ? skipped_ : i * row_bytes_;
    return static_cast<std::size_t>(std::min((i + 1) * row_bytes_, end) - first);
  }
  /// Neighbours of one owner at once.
  template <class Visit>
  void for_each_owner(const Visit& visit) const {
    for (std::size_t i = 0; i < owners_.size();) {
      const int owner = owners_[i];
      std::size_t count = 0;
      for (; i < owners_.size() && owners_[i] == owner; ++i) count += bytes_of_row(i);
      visit(owner, count);
    }
  }

  std::uint64_t row_bytes_ = 1;
  std::uint64_t skipped_ = 0;  ///< bytes of the first row that come before
  std::size_t bytes_ = 0;
  std::vector<std::size_t> bytes_of_rank_;  ///< bytes of each rank
  std::vector<int> owners_;
  std::vector<std::int64_t> places_;
};

}  // namespace ferry::detail
