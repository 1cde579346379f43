// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/refusals.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace ferry {

namespace detail {

inline constexpr std::size_t plan_workspace_alignment = 16;

template <ExecutionSpace Exec>
std::size_t bytes_of_plan(const Exec& exec, std::int64_t positions, std::int64_t rows);

/// Throws invalid_argument for a workspace that is no contiguous array of rank 1, too small or misaligned.
void require_workspace(const array_note& room, const void* data, bool contiguous, std::size_t needed);

/// The rows of the tables that a plan is for: a number, or those of one of the tables.
template <class Rows>
std::int64_t rows_of_tables(const Rows& rows) {
  if constexpr (std::integral<Rows>)
    return std::cmp_greater(rows, std::numeric_limits<std::int64_t>::max())
               ? std::numeric_limits<std::int64_t>::max()
               : static_cast<std::int64_t>(rows);
  else if constexpr (AnArray<Rows>)
    return make_ref(rows).rows();
  else
    return static_cast<std::int64_t>(rows.rows());
}

[[noreturn]] void refuse_plan_size(const std::string& positions, const std::string& rows);

}  // namespace detail

/// Size in bytes of the workspace that make_plan needs for `positions` indices into tables of `rows` rows, a
/// number or one of the tables. It is 64 bytes per position for the plan's arrays, on a device 2 more, and
/// the scratch memory of the sort. The size grows with `positions` and does not depend on the values of the
/// indices, so a workspace for the largest batch serves all. Throws invalid_argument for negative numbers,
/// and for numbers that make_plan refuses.
template <class Exec, std::integral Positions, class Rows>
  requires(detail::Fits<detail::plan_workspace_arguments, const Exec&, Positions, const Rows&>)
[[nodiscard]] std::size_t plan_workspace_bytes(const Exec& exec, Positions positions, const Rows& rows) {
  const std::int64_t table_rows = detail::rows_of_tables(rows);
  if (std::cmp_less(positions, 0) || table_rows < 0)
    detail::refuse_plan_size(detail::joined(positions), detail::joined(table_rows));
  return detail::bytes_of_plan(exec, static_cast<std::int64_t>(positions), table_rows);
}

}  // namespace ferry
