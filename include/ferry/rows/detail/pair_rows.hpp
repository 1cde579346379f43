// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/detail/sort_indices.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/plan/row_range.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/row_moves.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// The pairs of rows of a copy: which row is read and which one is written, for each position.
namespace ferry::kernels {

/// The sides of a copy, as reports number them. Row numbers without a sign add `no_sign`.
struct copy_side {
  static constexpr std::int64_t target = 0, source = 1, no_sign = 2;
};

/// Rows that an array of indices names.
template <class Index, class Bounds>
struct rows_of_indices {
  const Index* indices;
  std::int64_t rows;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, std::int64_t side,
                                   const detail::report_writer& report) const {
    const Index index = indices[position];
    const std::int64_t row = Bounds::resolve(index, rows);
    if constexpr (Bounds::reports)
      if (row < 0)
        report.out_of_range(position, static_cast<std::uint64_t>(static_cast<std::int64_t>(index)),
                            std::is_signed_v<Index> ? side : side + copy_side::no_sign);
    return row;
  }
  /// False if the policy leaves the position out. A batch with a row that is reported is not written.
  [[nodiscard]] KOKKOS_FUNCTION bool has_row(std::int64_t position) const {
    return Bounds::reports || Bounds::resolve(indices[position], rows) >= 0;
  }
};

/// Rows of a plan that are read. A bad index that the plan has found becomes one of the copy.
struct rows_of_plan {
  const std::int64_t* row_of;
  const detail::index_report* findings;  ///< null: indices were not checked
  bool is_signed;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, std::int64_t side,
                                   const detail::report_writer& report) const {
    const std::int64_t row = row_of[position];
    if (row < 0 && findings != nullptr)
      report.out_of_range(static_cast<std::int64_t>(findings->first_position), findings->first_index,
                          is_signed ? side : side + copy_side::no_sign);
    return row;
  }
  [[nodiscard]] KOKKOS_FUNCTION bool has_row(std::int64_t position) const { return row_of[position] >= 0; }
};

/// Rows of a plan that are written: each by its first or its last position alone, of those that have a row to
/// read.
template <class Sources>
struct winners_of_plan {
  Sources sources;
  const std::int64_t* row_of;
  const std::int64_t* inverse;
  const std::int64_t* segment_begin;
  const std::int64_t* order;
  bool takes_first;
  bool rejects;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, std::int64_t,
                                   const detail::report_writer& report) const {
    const std::int64_t row = row_of[position];
    if (row < 0 || !sources.has_row(position)) return -1;
    const std::int64_t segment = inverse[position];
    const std::int64_t begin = segment_begin[segment], end = segment_begin[segment + 1];
    if (end - begin == 1) return row;
    // Positions of a row ascend: a binary search finds the index of this one.
    std::int64_t index = begin;
    for (std::int64_t limit = end; limit - index > 1;) {
      const std::int64_t middle = index + (limit - index) / 2;
      (order[middle] <= position ? index : limit) = middle;
    }
    std::int64_t first = index, last = index;
    while (first > begin && !sources.has_row(order[first - 1])) --first;
    while (last + 1 < end && !sources.has_row(order[last + 1])) ++last;
    const bool is_first = first == begin, is_last = last + 1 == end;
    if (rejects && is_first && !is_last) report.duplicate(row);
    return (takes_first ? is_first : is_last) ? row : -1;
  }
};

/// Neighbouring rows.
struct rows_of_range {
  std::int64_t first;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, std::int64_t, const detail::report_writer&) const {
    return first + position;
  }
  [[nodiscard]] KOKKOS_FUNCTION static bool has_row(std::int64_t) { return true; }
};

/// Writes the rows of both sides, and reports bad indices. A position without a row to read has none to
/// write, for kernels that write from a buffer. One thread for each position.
template <class Sources, class Targets>
struct pair_rows {
  Sources sources;
  Targets targets;
  std::int64_t* source_rows;
  std::int64_t* target_rows;
  detail::report_writer report;

  static std::int64_t bytes_each() { return 6 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    const std::int64_t source = sources.row(position, copy_side::source, report);
    const std::int64_t target = targets.row(position, copy_side::target, report);
    source_rows[position] = source;
    target_rows[position] = source < 0 ? source : target;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The rows that a list names, for checks and kernels: a plan or a range as it is, indices as an array.
template <class List>
decltype(auto) listed_rows_of(const List& list) {
  if constexpr (std::is_same_v<List, row_range>)
    return (list);
  else
    return rows_named_by(list);
}
template <class Named>
std::int64_t listed_count(const Named& list) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Named>, row_range>)
    return list.count;
  else
    return positions_of(list);
}

/// Throws invalid_argument for a range that does not lie within the rows of the table.
void require_range(const char* side, const row_range& range, const untyped_array& table);

/// The rows of one side as pair_rows takes them. Bad indices become findings of the call.
template <class Bounds, class Exec, class Named>
auto rows_to_pair(launch_context<Exec>& call, const Named& list, std::int64_t rows) {
  using list_type = std::remove_cvref_t<Named>;
  if constexpr (std::is_same_v<list_type, row_range>) {
    return kernels::rows_of_range{list.first};
  } else if constexpr (is_plan<list_type>) {
    const auto& store = list.storage();
    call.use(store, false);
    return kernels::rows_of_plan{store->row_of, store->checked ? store->report->findings : nullptr,
                                 store->signed_indices};
  } else {
    using index = std::remove_const_t<typename list_type::value_type>;
    return kernels::rows_of_indices<index, Bounds>{indices_for_kernels(call, list, nullptr, true), rows};
  }
}

/// Enqueues the kernel that pairs the rows of `count` positions. `plan`: of the written rows, or null.
template <class SourceBounds, class TargetBounds, class Duplicates, class Exec, class Sources, class Targets>
kernels::row_pairs pair_rows(launch_context<Exec>& call, const Sources& sources, std::int64_t source_rows,
                             const Targets& targets, std::int64_t target_rows, const row_plan* plan,
                             std::int64_t count) {
  kernels::row_pairs pairs;
  auto* const read = call.template scratch<std::int64_t>(count);
  auto* const written = call.template scratch<std::int64_t>(count);
  pairs.source = read;
  pairs.target = written;
  const report_writer report = call.report();
  pairs.findings = report.findings;
  const auto source = rows_to_pair<SourceBounds>(call, sources, source_rows);
  using read_rows = std::remove_const_t<decltype(source)>;
  const auto enqueue = [&]<class Target>(const Target& target) {
    launch(call.exec(), call.label("pair"), count,
           kernels::pair_rows<read_rows, Target>{source, target, read, written, report});
  };
  if (plan != nullptr) {
    const plan_storage& store = *plan->storage();
    call.use(plan->storage());
    if (store.checked) pairs.plan_findings = store.report->findings;
    enqueue(kernels::winners_of_plan<read_rows>{source, store.row_of, store.inverse, store.segment_begin,
                                                store.order, std::is_same_v<Duplicates, duplicates::first>,
                                                Duplicates::forbids});
  } else if constexpr (!is_plan<std::remove_cvref_t<Targets>>) {
    enqueue(rows_to_pair<TargetBounds>(call, targets, target_rows));
  }
  return pairs;
}

}  // namespace ferry::detail
