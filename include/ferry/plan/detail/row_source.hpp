// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/policy.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// The order of additions over the values of a row. It depends on their number alone, so sums have the same
/// bits on every backend, path and placement, and several threads can sum the values of one row.
///
/// Fewer than 64 values are added one after the other, in the order of their positions. More are cut into
/// pieces of 32 values, or of 1/256 of all values if that is more; the last piece takes the rest, too. The
/// values of a piece are added one after the other, then its sums are.
template <class Number>
struct pieces_of {
  static constexpr Number least = 32;                                  ///< values of a piece
  static constexpr Number most = 256;                                  ///< pieces, but for the rest
  static constexpr Number least_cut = 2 * least;                       ///< values that are cut
  static constexpr Number greatest_count = most + most / (least + 1);  ///< with the rest

  Number size;
  Number count;

  KOKKOS_FORCEINLINE_FUNCTION explicit constexpr pieces_of(Number values)
      : size(values / most > least ? values / most : least), count(values < least_cut ? 1 : values / size) {}

  /// The end of a piece of the values [0, values).
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION constexpr Number end(Number number, Number values) const {
    return number + 1 == count ? values : (number + 1) * size;
  }
};
using sum_pieces = pieces_of<std::int64_t>;
/// For fewer than 2^32 values.
using piece_cut = pieces_of<std::uint32_t>;

}  // namespace ferry::kernels

/// The index loaders of the row kernels. A *source* describes the items of a batch:
///   blocked()        whether nothing may be written, because the batch was found faulty
///   items(most)      the number of items, at most `most`; for host threads
///   segment(i)       the table row of item i (-1: none) and the indices [begin, end) of its values
///   segment_within(i)
///                    segment(i) for an item that is known to exist
///   position(k)      the row of the values array at index k
///   adjusts          declared if the values at an index are adjusted after they were loaded:
///   adjust<Tile>(tile, k, column, count)
///   in_order         declared if the positions of item i + 1 follow those of item i
namespace ferry::kernels {

struct row_segment {
  std::int64_t row = -1;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Item i is position i of an index array. With a report, the first lane of a position records its bad index.
template <class Index, class Bounds>
struct index_rows {
  static constexpr bool reports = Bounds::reports;
  using index_type = Index;

  const Index* indices = nullptr;
  std::int64_t rows = 0;
  ferry::detail::report_writer report;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool record) const {
    const Index index = indices[position];
    const std::int64_t row = Bounds::resolve(index, rows);
    if constexpr (Bounds::reports)
      if (row < 0 && record)
        report.out_of_range(position, static_cast<std::uint64_t>(static_cast<std::int64_t>(index)));
    return row;
  }
  /// For kernels that read a row before they decide: row 0 if the position `misses` its own.
  KOKKOS_FUNCTION std::int64_t row_or_first(std::int64_t position, bool& misses) const
      requires(std::is_same_v<Bounds, bounds::check> || std::is_same_v<Bounds, bounds::skip>) {
    const Index index = indices[position];
    misses = !bounds::detail::inside(index, rows);
    return misses ? 0 : static_cast<std::int64_t>(index);
  }
  /// Only reads findings of an earlier kernel, see resolve_indices.
  KOKKOS_FUNCTION bool blocked() const {
    if constexpr (Bounds::reports)
      return report.findings->out_of_range != 0;
    else
      return false;
  }
  static constexpr bool in_order = true;
  KOKKOS_FUNCTION static std::int64_t items(std::int64_t most) { return most; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const { return {row(i, false), i, i + 1}; }
  KOKKOS_FUNCTION row_segment segment_within(std::int64_t i) const { return segment(i); }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return k; }
};

/// The sums of the pieces of long segments, which one kernel of a device makes for another. The pieces of a
/// segment have rows of a buffer from `row_of(begin)` on, where no other segment has one.
struct long_sums {
  void* rows = nullptr;  ///< null: none are made
  std::uint32_t stride = 0;

  /// True if a segment has several pieces.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr bool has(std::int64_t values) {
    return values >= sum_pieces::least_cut;
  }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr std::int64_t row_of(std::int64_t index) {
    return index / sum_pieces::least;
  }
  template <class Compute>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION Compute* row(std::int64_t number) const {
    return static_cast<Compute*>(rows) + number * stride;
  }
};

/// Item i is segment i of a plan: one table row and all positions that name it, in order.
struct plan_rows {
  const std::int64_t* unique_rows = nullptr;
  const std::int64_t* segment_begin = nullptr;
  const std::int64_t* order = nullptr;
  const std::int64_t* unique_count = nullptr;
  const ferry::detail::index_report* findings = nullptr;  ///< null: indices are not checked
  const ferry::detail::index_report* repeats = nullptr;   ///< null: duplicates are not checked
  long_sums sums{};

  KOKKOS_FUNCTION bool blocked() const {
    return (findings != nullptr && findings->out_of_range != 0) ||
           (repeats != nullptr && repeats->duplicates != 0);
  }
  KOKKOS_FUNCTION std::int64_t items(std::int64_t most) const {
    return *unique_count < most ? *unique_count : most;
  }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const {
    // A device reads all of it at once: the arrays have elements for items beyond the count.
    KOKKOS_IF_ON_DEVICE((const std::int64_t count = *unique_count;
                         const row_segment candidate = segment_within(i);
                         return i < count ? candidate : row_segment{};))
    KOKKOS_IF_ON_HOST((return i < *unique_count ? segment_within(i) : row_segment{};))
  }
  KOKKOS_FUNCTION row_segment segment_within(std::int64_t i) const {
    return {unique_rows[i], segment_begin[i], segment_begin[i + 1]};
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

/// Item i is row rows[i]. Its value is row i of the values.
struct listed_rows {
  const std::int64_t* rows = nullptr;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool) const { return rows[position]; }
  KOKKOS_FUNCTION static bool blocked() { return false; }
  static constexpr bool in_order = true;
  KOKKOS_FUNCTION static std::int64_t items(std::int64_t most) { return most; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const { return {rows[i], i, i + 1}; }
  KOKKOS_FUNCTION row_segment segment_within(std::int64_t i) const { return segment(i); }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return k; }
};

/// Item i is row first + i. Its value is row i of the values. Nothing is loaded to find either.
struct consecutive_rows {
  std::int64_t first = 0;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool) const { return first + position; }
  KOKKOS_FUNCTION static bool blocked() { return false; }
  static constexpr bool in_order = true;
  KOKKOS_FUNCTION static std::int64_t items(std::int64_t most) { return most; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const { return {first + i, i, i + 1}; }
  KOKKOS_FUNCTION row_segment segment_within(std::int64_t i) const { return segment(i); }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t k) { return k; }
};

/// Position p is row p of a dense buffer, unless rows[p] is negative.
struct masked_identity {
  const std::int64_t* rows = nullptr;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool) const {
    return rows[position] < 0 ? -1 : position;
  }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t k) { return k; }
};

/// Item k is element k of a plan's order: its row, and its position of the batch.
struct sorted_batch {
  const std::uint64_t* sorted_rows = nullptr;
  const std::int64_t* order = nullptr;
  std::uint64_t rows = 0;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t k, bool) const {
    return sorted_rows[k] < rows ? static_cast<std::int64_t>(sorted_rows[k]) : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

/// Position k of a batch goes to the row that its index names: a scatter, written as a gather from the batch.
/// To report bad indices it needs the findings of an earlier kernel, see resolve_indices.
template <class Index, class Bounds>
struct index_destinations {
  static constexpr bool spreads_positions = true;  ///< neighbouring items go to rows far from one another

  index_rows<Index, Bounds> rows;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t k, bool) const {
    return rows.blocked() || rows.row(k, false) < 0 ? -1 : k;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return rows.row(k, false); }
};

/// Position p is row p.
struct identity {
  KOKKOS_FUNCTION static std::int64_t row(std::int64_t position, bool) { return position; }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t k) { return k; }
};

}  // namespace ferry::kernels
