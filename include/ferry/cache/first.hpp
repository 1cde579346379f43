// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>
#include <ferry/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace ferry::cache {

/// Keeps the first rows of the table, for rows that are numbered by their frequency. They never change.
struct first {
  static constexpr std::string_view name = "cache::first";  ///< see ferry::CachePolicy
  static constexpr bool counts_rows = false;                ///< see ferry::CachePolicy

  count rows;  ///< how many rows

  /// See ferry::CachePolicy.
  /// @{
  [[nodiscard]] std::int64_t most_rows(std::int64_t table_rows) const {
    if (rows.value() < 0)
      throw invalid_argument(detail::joined("ferry::cache::first: rows = ", rows.value(), ", must be >= 0"));
    return std::min(rows.value(), table_rows);
  }
  [[nodiscard]] static std::int64_t interval() { return 0; }
  [[nodiscard]] std::vector<std::int64_t> rows_from_start(std::int64_t table_rows) const {
    std::vector<std::int64_t> list(static_cast<std::size_t>(most_rows(table_rows)));
    std::iota(list.begin(), list.end(), std::int64_t{0});
    return list;
  }
  [[nodiscard]] static first resized(std::int64_t most) { return {most}; }
  /// @}
};
static_assert(CachePolicy<first>);

}  // namespace ferry::cache
