// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The kernels that process indices alone. One thread per position or segment.
namespace ferry::kernels {

/// Fills the report, so that a later kernel of the verb can refuse to write. Resolves raw indices to rows
/// (-1: none) if row_of is given. `keys` and `order`, if given, are the input of the sort: a position without
/// a row gets the key `rows` and is sorted after all others.
template <class Index, class Bounds>
struct resolve_indices {
  index_rows<Index, Bounds> source;
  std::int64_t* row_of;
  std::uint64_t* keys;
  std::int64_t* order;

  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = source.row(i, true);
    if (row_of != nullptr) row_of[i] = row;
    if (keys == nullptr) return;
    keys[i] = static_cast<std::uint64_t>(row < 0 ? source.rows : row);
    order[i] = i;
  }
};

/// rows[p] = -1 if a kernel before has found a bad index in the batch, of which then nothing is written.
struct withhold_rows {
  const ferry::detail::index_report* findings;
  std::int64_t* rows;

  static std::int64_t bytes_each() { return sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t p) const {
    if (findings->out_of_range != 0) rows[p] = -1;
  }
};

/// positions[p] = p, or -1 if the position has no row: indices for the rows of a dense buffer.
struct list_positions {
  const std::int64_t* rows;
  std::int64_t* positions;

  static std::int64_t bytes_each() { return 2 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t p) const { positions[p] = rows[p] < 0 ? -1 : p; }
};

/// heads[i] = the first position of segment i; 0 for items beyond the count, which kernels read and don't
/// use.
struct list_heads {
  const std::int64_t* segment_begin;
  const std::int64_t* order;
  const std::int64_t* unique_count;
  std::int64_t* heads;

  static std::int64_t bytes_each() { return 3 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    heads[i] = i < *unique_count ? order[segment_begin[i]] : 0;
  }
};

/// counts[i] = the number of positions of segment i.
struct count_positions {
  const std::int64_t* segment_begin;
  std::int64_t* counts;

  static std::int64_t bytes_each() { return 2 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    counts[i] = segment_begin[i + 1] - segment_begin[i];
  }
};

/// Reports each row that a plan's batch names more than once.
struct find_duplicates {
  const std::int64_t* unique_rows;
  const std::int64_t* segment_begin;
  const std::int64_t* unique_count;
  ferry::detail::report_writer report;

  static std::int64_t bytes_each() { return 2 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (i < *unique_count && segment_begin[i + 1] - segment_begin[i] > 1) report.duplicate(unique_rows[i]);
  }
};

}  // namespace ferry::kernels
