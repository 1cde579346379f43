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

/// How many segments, and runs of segments whose rows are neighbours, begin before a place of the sorted keys.
struct segment_heads {
  std::int64_t segments = 0;
  std::int64_t runs = 0;

  KOKKOS_FUNCTION segment_heads& operator+=(const segment_heads& other) {
    segments += other.segments;
    runs += other.runs;
    return *this;
  }
};

/// Scan over the sorted keys: the number of segment heads before place k is the segment of place k. A segment
/// whose row does not follow the row before it is the head of a run.
struct find_segments {
  const std::uint64_t* keys;
  const std::int64_t* order;
  std::int64_t count;
  std::uint64_t rows;
  std::int64_t* unique_rows;
  std::int64_t* segment_begin;
  std::int64_t* run_begin;
  std::int64_t* inverse;
  std::int64_t* unique_count;
  std::int64_t* run_count;

  using value_type = segment_heads;

  KOKKOS_FUNCTION void init(value_type& heads) const { heads = {}; }
  KOKKOS_FUNCTION void join(value_type& heads, const value_type& more) const { heads += more; }

  KOKKOS_FUNCTION void operator()(std::int64_t k, value_type& heads, bool final) const {
    const bool valid = keys[k] < rows;
    const bool head = valid && (k == 0 || keys[k - 1] != keys[k]);
    const bool run = head && (k == 0 || keys[k - 1] + 1 != keys[k]);
    if (head) ++heads.segments;
    if (run) ++heads.runs;
    if (!final) return;
    inverse[order[k]] = valid ? heads.segments - 1 : -1;
    if (head) {
      unique_rows[heads.segments - 1] = static_cast<std::int64_t>(keys[k]);
      segment_begin[heads.segments - 1] = k;
    }
    if (run) run_begin[heads.runs - 1] = heads.segments - 1;
    // The ends of the last segment and of the last run are written by the last valid place.
    if (valid && (k + 1 == count || keys[k + 1] >= rows)) close(heads, k + 1);
    if (!valid && k == 0) close({}, 0);
  }

  /// Also what a plan of no positions consists of.
  KOKKOS_FUNCTION void close(const value_type& heads, std::int64_t places) const {
    segment_begin[heads.segments] = places;
    run_begin[heads.runs] = heads.segments;
    *unique_count = heads.segments;
    *run_count = heads.runs;
  }
};

/// A plan of no positions; one thread.
struct close_empty_plan {
  find_segments plan;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { plan.close({}, 0); }
};

/// positions[p] = p, or -1 where the position has no row: what makes a dense buffer's rows indices of their own.
struct list_positions {
  const std::int64_t* rows;
  std::int64_t* positions;

  KOKKOS_FUNCTION void operator()(std::int64_t p) const { positions[p] = rows[p] < 0 ? -1 : p; }
};

/// heads[i] = the first position of segment i.
struct list_heads {
  const std::int64_t* segment_begin;
  const std::int64_t* order;
  const std::int64_t* unique_count;
  std::int64_t* heads;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (i < *unique_count) heads[i] = order[segment_begin[i]];
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
