// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/prefetch.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// A window of upcoming rows: they are looked up and prefetched while earlier rows are processed.
template <class Duplicates, class Source, class Value>
struct coming_rows {
  static constexpr std::int64_t most = look_ahead::lines_ahead;
  static_assert((most & (most - 1)) == 0);
  std::int64_t row[most];
  const Value* value[most];  ///< null if the row has several, or none

  template <class Shared>
  [[gnu::always_inline]] void look_up(const Shared& batch, std::int64_t item) {
    const row_segment rows = batch.source.segment_within(item);
    const Value* first = nullptr;
    if (rows.row >= 0) {
      first = batch.values + batch.source.position(position_of_value(rows)) * batch.values_stride;
      look_ahead::prefetch(first, batch.width * static_cast<std::int64_t>(sizeof(Value)));
      batch.operation.prefetch(rows.row, batch.width);
    }
    row[item & (most - 1)] = rows.row;
    value[item & (most - 1)] = has_one_value(rows) ? first : nullptr;
  }

 private:
  /// True if a row takes one value as it is. Values of other types are converted on the way.
  static bool has_one_value(const row_segment& rows) {
    if constexpr (requires { Source::adjusts; })
      return false;
    else
      return !Duplicates::combines || rows.end - rows.begin == 1;
  }
  static std::int64_t position_of_value(const row_segment& rows) {
    return std::is_same_v<Duplicates, duplicates::last> ? rows.end - 1 : rows.begin;
  }
};

}  // namespace ferry::kernels
