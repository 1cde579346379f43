// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>
#include <ferry/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ferry::cache {

/// Keeps the rows that were used most. Verbs count how often each row is used; with every refresh after a
/// full interval the counts are halved, so that changes of popularity are followed. From the third interval
/// on a row needs two uses more than a cached one to replace it, so that rows which are hardly used are not
/// exchanged by chance. A cached row with nothing left of its count leaves for any that was used. Of
/// rows with equal counts those stay that are there, then smaller row numbers win.
///
///   rows     the most rows in device memory
///   refresh  batches between two refreshes. The first refreshes come after 1, 2, 4, 8, ... batches
struct frequency {
  static constexpr std::string_view name = "cache::frequency";  ///< see ferry::CachePolicy
  static constexpr bool counts_rows = true;                     ///< see ferry::CachePolicy

  count rows;          ///< the most rows in device memory
  count refresh = 64;  ///< batches between two refreshes

  /// See ferry::CachePolicy.
  /// @{
  [[nodiscard]] std::int64_t most_rows(std::int64_t table_rows) const {
    if (rows.value() < 0)
      throw invalid_argument(
          detail::joined("ferry::cache::frequency: rows = ", rows.value(), ", must be >= 0"));
    if (refresh.value() < 1)
      throw invalid_argument(
          detail::joined("ferry::cache::frequency: refresh = ", refresh.value(), ", must be >= 1"));
    return std::min(rows.value(), table_rows);
  }
  [[nodiscard]] std::int64_t interval() const { return refresh.value(); }
  [[nodiscard]] static std::vector<std::int64_t> rows_from_start(std::int64_t) { return {}; }
  [[nodiscard]] frequency resized(std::int64_t most) const { return {most, refresh}; }
  /// @}
};
static_assert(CachePolicy<frequency>);

}  // namespace ferry::cache
