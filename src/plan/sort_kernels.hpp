// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../backends/sorted_keys.hpp"

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The kernels that make a plan. One thread per position.
namespace ferry::kernels {

/// The keys that sort the positions of a batch by row: (row, position). A position without a row gets `rows`
/// as its row and is sorted after all others. A call with `record` also stores the row and reports a bad
/// index. Index type and policy are values: one kernel serves them all.
struct any_row_keys {
  const void* indices = nullptr;
  int index_bytes = 8;
  bool is_signed = true;
  bool reports = false;
  bool clamps = false;
  bool checks = true;
  std::int64_t rows = 0;
  ferry::detail::report_writer report;
  std::int64_t* row_of = nullptr;
  int position_bits = 0;
  std::int64_t* long_found = nullptr;  ///< see write_segments, set to 0; or null

  /// The bits of an index, sign-extended. As an unsigned number they are below `rows` if and only if the
  /// index is in [0, rows).
  [[nodiscard]] KOKKOS_FUNCTION std::uint64_t bits(std::int64_t i) const {
    if (index_bytes == 8) return static_cast<const std::uint64_t*>(indices)[i];
    if (is_signed)
      return static_cast<std::uint64_t>(std::int64_t{static_cast<const std::int32_t*>(indices)[i]});
    return static_cast<const std::uint32_t*>(indices)[i];
  }

  KOKKOS_FUNCTION std::uint64_t operator()(std::int64_t i, bool record) const {
    const std::uint64_t index = bits(i);
    auto row = static_cast<std::int64_t>(index);
    if (checks && index >= static_cast<std::uint64_t>(rows)) {
      if (clamps)
        row = is_signed && row < 0 ? 0 : rows - 1;
      else
        row = -1;
      if (reports && record) report.out_of_range(i, index);
    }
    if (record) row_of[i] = row;
    if (record && i == 0 && long_found != nullptr) *long_found = 0;
    return static_cast<std::uint64_t>(row < 0 ? rows : row) << position_bits | static_cast<std::uint64_t>(i);
  }
};

/// keys[i] = the key of position i.
struct key_indices {
  any_row_keys key_of;
  std::uint64_t* keys;

  static std::int64_t bytes_each() { return 3 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { keys[i] = key_of(i, true); }
};

/// Builds the arrays of a plan from its sorted keys and the running sums of sorted(k), which as a kernel it
/// finds in `sorted_rows`.
struct write_segments {
  sorted_keys sorted;
  std::uint64_t* sorted_rows;
  std::int64_t* order;
  std::int64_t* unique_rows;
  std::int64_t* segment_begin;
  std::int64_t* run_begin;
  std::int64_t* inverse;
  std::int64_t* unique_count;
  std::int64_t* run_count;
  std::int64_t* long_found = nullptr;  ///< set to 1 if a segment is long; null: no one asks

  static std::int64_t bytes_each() { return 7 * sizeof(std::int64_t); }

  /// A plan without positions has one item, which closes the arrays.
  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    if (sorted.count == 0) return close(0, 0, 0);
    write(k, sorted_rows[k]);
  }

  /// Writes the elements of index k, where `begun` segments and runs have begun.
  KOKKOS_FUNCTION void write(std::int64_t k, std::uint64_t begun) const {
    const std::uint64_t adds = sorted(k);
    const auto segments = static_cast<std::int64_t>(begun & 0xffffffffu);
    const auto runs = static_cast<std::int64_t>(begun >> sorted_keys::runs_shift);
    const std::uint64_t row = sorted.row(k);
    const std::int64_t position = sorted.position(k);
    const bool valid = row < sorted.rows;
    sorted_rows[k] = row;
    order[k] = position;
    inverse[position] = valid ? segments - 1 : -1;
    if ((adds & 1u) != 0) {
      const std::int64_t last = k + sum_pieces::least_cut - 1;
      if (long_found != nullptr && last < sorted.count && sorted.row(last) == row) *long_found = 1;
      unique_rows[segments - 1] = static_cast<std::int64_t>(row);
      segment_begin[segments - 1] = k;
    } else {
      // One of the elements after the last segment, which kernels read and don't use. They are as many as the
      // indices that begin no segment.
      const std::int64_t spare = sorted.count - 1 - (k - segments);
      unique_rows[spare] = 0;
      segment_begin[spare + 1] = sorted.count;
    }
    if (adds >> sorted_keys::runs_shift != 0) run_begin[runs - 1] = segments - 1;
    // The last valid index writes the ends of the last segment and of the last run.
    if (valid && (k + 1 == sorted.count || sorted.row(k + 1) >= sorted.rows)) close(segments, runs, k + 1);
    if (!valid && k == 0) close(0, 0, 0);
  }

  KOKKOS_FUNCTION void close(std::int64_t segments, std::int64_t runs, std::int64_t end) const {
    segment_begin[segments] = end;
    run_begin[runs] = segments;
    *unique_count = segments;
    *run_count = runs;
  }
};

}  // namespace ferry::kernels
