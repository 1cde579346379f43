// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/index_keys.hpp>
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

/// keys[i] = the key of position i.
template <class Index, class Bounds>
struct key_indices {
  row_keys<Index, Bounds> key_of;
  std::uint64_t* keys;

  static std::int64_t bytes_each() { return 3 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { keys[i] = key_of(i); }
};

/// Sorted keys. A segment is all places of one row. A segment whose row does not follow the row before it
/// begins a run.
struct sorted_keys {
  const std::uint64_t* keys;
  std::int64_t count;
  std::uint64_t rows;
  int position_bits;

  static constexpr int runs_shift = 32;

  KOKKOS_FUNCTION std::uint64_t row(std::int64_t k) const { return keys[k] >> position_bits; }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const {
    return static_cast<std::int64_t>(keys[k] & ((std::uint64_t{1} << position_bits) - 1));
  }
  /// What place k adds to the numbers of segments (lower half) and of runs (upper half) that have begun.
  KOKKOS_FUNCTION std::uint64_t operator()(std::int64_t k) const {
    const std::uint64_t here = row(k);
    if (here >= rows) return 0;
    const std::uint64_t before = k == 0 ? here + 2 : row(k - 1);
    return std::uint64_t{before != here} | std::uint64_t{before != here && before + 1 != here} << runs_shift;
  }
};

/// Builds the arrays of a plan from its sorted keys and the running sums of from(k), which as a kernel it
/// finds in `sorted_rows`.
struct place_segments {
  sorted_keys from;
  std::uint64_t* sorted_rows;
  std::int64_t* order;
  std::int64_t* unique_rows;
  std::int64_t* segment_begin;
  std::int64_t* run_begin;
  std::int64_t* inverse;
  std::int64_t* unique_count;
  std::int64_t* run_count;

  static std::int64_t bytes_each() { return 7 * sizeof(std::int64_t); }

  /// A plan without positions has one item, which closes the arrays.
  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    if (from.count == 0) return close(0, 0, 0);
    place(k, sorted_rows[k]);
  }

  /// Writes the elements of place k, where `begun` segments and runs have begun.
  KOKKOS_FUNCTION void place(std::int64_t k, std::uint64_t begun) const {
    const std::uint64_t adds = from(k);
    const auto segments = static_cast<std::int64_t>(begun & 0xffffffffu);
    const auto runs = static_cast<std::int64_t>(begun >> sorted_keys::runs_shift);
    const std::uint64_t row = from.row(k);
    const std::int64_t position = from.position(k);
    const bool valid = row < from.rows;
    sorted_rows[k] = row;
    order[k] = position;
    inverse[position] = valid ? segments - 1 : -1;
    if ((adds & 1u) != 0) {
      unique_rows[segments - 1] = static_cast<std::int64_t>(row);
      segment_begin[segments - 1] = k;
    } else {
      // One of the elements after the last segment, which kernels read and don't use. They are as many as the
      // places that begin no segment.
      const std::int64_t later = from.count - 1 - (k - segments);
      unique_rows[later] = 0;
      segment_begin[later + 1] = from.count;
    }
    if (adds >> sorted_keys::runs_shift != 0) run_begin[runs - 1] = segments - 1;
    // The last valid place writes the ends of the last segment and of the last run.
    if (valid && (k + 1 == from.count || from.row(k + 1) >= from.rows)) close(segments, runs, k + 1);
    if (!valid && k == 0) close(0, 0, 0);
  }

  KOKKOS_FUNCTION void close(std::int64_t segments, std::int64_t runs, std::int64_t places) const {
    segment_begin[segments] = places;
    run_begin[runs] = segments;
    *unique_count = segments;
    *run_count = runs;
  }
};

/// positions[p] = p, or -1 where the position has no row: indices for the rows of a dense buffer.
struct list_positions {
  const std::int64_t* rows;
  std::int64_t* positions;

  KOKKOS_FUNCTION void operator()(std::int64_t p) const { positions[p] = rows[p] < 0 ? -1 : p; }
};

/// heads[i] = the first position of segment i; 0 for items beyond the count, which kernels read and don't
/// use.
struct list_heads {
  const std::int64_t* segment_begin;
  const std::int64_t* order;
  const std::int64_t* unique_count;
  std::int64_t* heads;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    heads[i] = i < *unique_count ? order[segment_begin[i]] : 0;
  }
};

/// counts[i] = the number of positions of segment i.
struct count_positions {
  const std::int64_t* segment_begin;
  std::int64_t* counts;

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
