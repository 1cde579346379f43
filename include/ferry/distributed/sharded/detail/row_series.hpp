// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::detail {

/// The rows first, first + stride, ... of a table: `count` of them.
struct row_series {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t count = 0;

  [[nodiscard]] std::int64_t last() const { return first + (count - 1) * stride; }
  /// The places in this series of rows that are part of it.
  [[nodiscard]] row_series places_of(const row_series& rows) const {
    return {(rows.first - first) / stride, rows.stride / stride, rows.count};
  }
};

/// The rows that two series have in common, in ascending order.
[[nodiscard]] row_series common_rows(const row_series& a, const row_series& b);

/// True if a shard of `count` rows with these numbers is a series: the numbers ascend by one stride.
[[nodiscard]] bool is_series(const kernels::global_rows& numbers, std::int64_t count);

/// The shards of a table as series, by rank; empty if a shard is none.
template <class Table>
std::vector<row_series> series_of(const Table& table) {
  const int ranks = table.comm().size();
  std::vector<row_series> series;
  series.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    const auto numbers = table.sharding().global_rows(r, static_cast<std::int64_t>(table.rows()), ranks);
    const std::int64_t count = table.rows_of(r);
    if (!is_series(numbers, count)) return {};
    series.push_back({numbers.first, count > 1 ? numbers.stride : 1, count});
  }
  return series;
}

/// True if the rows of each shard lie one after the other in the table.
inline bool are_ranges(const std::vector<row_series>& series) {
  return !series.empty() &&
         std::all_of(series.begin(), series.end(), [](const row_series& rows) { return rows.stride == 1; });
}

/// A series of rows of an array with dense rows, as a matrix.
template <class T, class Space>
array_ref<T, Space> rows_in_series(const array_ref<T, Space>& array, const row_series& rows) {
  array_ref<T, Space> part = array;
  const std::int64_t step = array.row_stride(), width = array.width();
  part.data += rows.first * step;
  part.rank = 2;
  part.extents[0] = rows.count;
  part.extents[1] = width;
  part.strides[0] = rows.count > 1 ? rows.stride * step : width;
  part.strides[1] = 1;
  return part;
}

}  // namespace ferry::detail
