// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>
#include <ferry/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ferry::cache {

/// Keeps the rows that were used last, exactly: ferry::resolve brings the rows of each batch, on the device.
/// Rows are `groups` equal ranges, each with `slots` slots and an order of use of its own: a request, a
/// layer, a pool of experts. Verbs on rows resolve those of their batch first.
///
///   slots       of each group
///   groups      must divide the rows of the table
///   write_back  changed rows return to the table when they leave their slots, and by flush(). By default
///               verbs that write change the table as well, which is current when their work has ended
struct lru {
  static constexpr std::string_view name = "cache::lru";  ///< see ferry::CachePolicy
  static constexpr bool counts_rows = false;              ///< see ferry::CachePolicy
  static constexpr bool keeps_order = true;               ///< batches bring their rows

  count slots;              ///< of each group
  count groups = 1;         ///< equal ranges of rows
  bool write_back = false;  ///< whether the table gets changed rows later

  /// See ferry::CachePolicy.
  /// @{
  [[nodiscard]] std::int64_t most_rows(std::int64_t table_rows) const {
    const std::int64_t number = groups.value();
    if (number < 1 || number > std::max<std::int64_t>(1, table_rows) || table_rows % number != 0)
      throw invalid_argument(ferry::detail::joined("ferry::cache::lru: groups = ", number,
                                                   ", must be positive and divide the ", table_rows,
                                                   " rows of the table"));
    if (slots.value() < 1 || slots.value() > max_slots / number)
      throw invalid_argument(ferry::detail::joined("ferry::cache::lru: slots = ", slots.value(),
                                                   " for each group, must be from 1 to ",
                                                   max_slots / number));
    return number * slots.value();
  }
  [[nodiscard]] static std::int64_t interval() { return 0; }
  [[nodiscard]] static std::vector<std::int64_t> rows_from_start(std::int64_t) { return {}; }
  [[nodiscard]] lru resized(std::int64_t most) const {
    if (most < groups.value())
      throw invalid_argument(ferry::detail::joined(
          "ferry::cache::lru: ", most, " slots in all are too few for ", groups.value(), " groups"));
    return {most / groups.value(), groups, write_back};
  }
  /// @}
  static constexpr std::int64_t max_slots = std::int64_t{1} << 30;  ///< of all groups
};
static_assert(CachePolicy<lru>);

}  // namespace ferry::cache
