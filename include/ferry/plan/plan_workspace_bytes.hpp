// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry {

namespace detail {

inline constexpr std::size_t plan_workspace_alignment = 16;

template <ExecutionSpace Exec>
std::size_t bytes_of_plan(const Exec& exec, std::int64_t positions, std::int64_t rows);

/// Throws invalid_argument for a workspace that is no contiguous array of rank 1, too small or misaligned.
void require_workspace(const array_note& room, const void* data, bool contiguous, std::size_t needed);

[[noreturn]] void refuse_plan_size(const std::string& positions, const std::string& rows);

}  // namespace detail

/// Size in bytes of the workspace that make_plan needs for `positions` indices into tables of `rows` rows: 64
/// bytes per position for the plan's arrays, and the scratch memory of the sort. The size grows with
/// `positions` and does not depend on the values of the indices, so a workspace for the largest batch serves
/// all. Throws invalid_argument for negative numbers, and for numbers that make_plan refuses.
template <class Exec, std::integral Positions, std::integral Rows>
[[nodiscard]] std::size_t plan_workspace_bytes(const Exec& exec, Positions positions, Rows rows) {
  detail::require_execution_space<Exec>();
  if (std::cmp_less(positions, 0) || std::cmp_less(rows, 0))
    detail::refuse_plan_size(std::to_string(positions), std::to_string(rows));
  return detail::bytes_of_plan(exec, static_cast<std::int64_t>(positions), static_cast<std::int64_t>(rows));
}

}  // namespace ferry
