// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/cache/cache_policy.hpp>
#include <ferry/cache/verbs.hpp>

/// Cached tables next to tables without a cache: the same verbs on both must give the same bits.
namespace ferry_test {

/// Rows with skew: half of the positions name one of `few` neighbouring rows from `begin` on.
template <class Index>
std::vector<Index> skewed(std::mt19937_64& random, std::size_t count, std::size_t rows, std::size_t begin,
                          std::size_t few) {
  std::vector<Index> result(count);
  for (auto& index : result)
    index = static_cast<Index>((random() & 1u) != 0 ? random() % rows : (begin + random() % few) % rows);
  return result;
}

/// The rows in the slots of a cache, in ascending order.
template <class Cached>
std::vector<std::int64_t> cached_rows(const Cached& hot) {
  const auto& memory = hot.core().memory;
  const auto words = take(memory.words);
  const auto offset = reinterpret_cast<const std::uint64_t*>(memory.book.current_rows) - memory.words.data();
  std::vector<std::int64_t> rows;
  for (std::int64_t s = 0; s < memory.slots; ++s)
    if (const auto row = static_cast<std::int64_t>(words[static_cast<std::size_t>(offset + s)]); row != 0)
      rows.push_back(row - 1);
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// A number of cached rows for a table of `rows` rows, of every kind.
inline std::vector<std::size_t> cache_sizes(std::size_t rows) { return {0, 1, rows / 9, rows}; }

}  // namespace ferry_test
