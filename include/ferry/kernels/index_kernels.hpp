#pragma once

#include <ferry/index/report.hpp>
#include <ferry/kernels/row_source.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The kernels that look at indices alone. One thread for each position or segment.
namespace ferry::kernels {

/// Fills the report, so that a later kernel of the same verb can refuse to write.
template <class Index, class Bounds>
struct validate_indices {
  index_rows<Index, Bounds> source;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { (void)source.row(i, true); }
};

/// Raw indices -> rows (-1: none), where row_of is given. keys and order, where given, are what the sort takes:
/// positions without a row get the key `rows` and so end up behind all others.
template <class Index, class Bounds>
struct resolve_indices {
  index_rows<Index, Bounds> source;
  std::int64_t* row_of;
  std::uint64_t* keys;
  std::int64_t* order;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = source.row(i, true);
    if (row_of != nullptr) row_of[i] = row;
    if (keys == nullptr) return;
    keys[i] = static_cast<std::uint64_t>(row < 0 ? source.rows : row);
    order[i] = i;
  }
};

/// Scan over the sorted keys: the number of segment heads before place k is the segment of place k.
struct find_segments {
  const std::uint64_t* keys;
  const std::int64_t* order;
  std::int64_t count;
  std::uint64_t rows;
  std::int64_t* unique_rows;
  std::int64_t* segment_begin;
  std::int64_t* inverse;
  std::int64_t* unique_count;

  using value_type = std::int64_t;

  KOKKOS_FUNCTION void operator()(std::int64_t k, std::int64_t& heads, bool final) const {
    const bool valid = keys[k] < rows;
    const bool head = valid && (k == 0 || keys[k - 1] != keys[k]);
    if (head) ++heads;
    if (!final) return;
    inverse[order[k]] = valid ? heads - 1 : -1;
    if (head) {
      unique_rows[heads - 1] = static_cast<std::int64_t>(keys[k]);
      segment_begin[heads - 1] = k;
    }
    // The end of the last segment is written by the last valid place.
    if (valid && (k + 1 == count || keys[k + 1] >= rows)) {
      segment_begin[heads] = k + 1;
      *unique_count = heads;
    }
    if (!valid && k == 0) *unique_count = 0;
  }
};

/// Reports each row that a plan's batch names more than once.
struct find_duplicates {
  const std::int64_t* unique_rows;
  const std::int64_t* segment_begin;
  const std::int64_t* unique_count;
  report_writer report;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (i < *unique_count && segment_begin[i + 1] - segment_begin[i] > 1) report.duplicate(unique_rows[i]);
  }
};

}  // namespace ferry::kernels
