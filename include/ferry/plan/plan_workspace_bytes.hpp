// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry {

namespace detail {

/// Offsets of a plan's arrays in its block, in bytes. They are multiples of 128, so in an aligned block
/// kernels read the arrays in whole cache lines.
struct plan_layout {
  std::size_t row_of = 0, inverse = 0, unique_rows = 0, counts = 0, order = 0, segment_begin = 0,
              sorted_rows = 0;
  // The two buffers of the sort. After it, the one without the result holds the runs.
  std::size_t keys[2] = {};
  std::size_t sort = 0, sort_bytes = 0;  ///< scratch of the sort, then of the prefix sums
  std::size_t bytes = 0;
  // A key is (row, position), with row = `rows` for no row.
  int position_bits = 0;
  int key_bits = 1;
};

/// Scratch bytes of the sort: none where the backend compares all keys.
template <class Backend>
std::size_t sort_scratch_bytes(std::int64_t positions, int first_bit, int bits) {
  if constexpr (requires { Backend::sorts_without_scratch(positions); })
    if (Backend::sorts_without_scratch(positions)) return 0;
  return std::max(Backend::sort_keys_bytes(positions, first_bit, bits),
                  Backend::template sum_bytes<kernels::sorted_keys>(positions));
}

/// For the current device.
template <class Backend>
plan_layout layout_of_plan(std::int64_t positions, std::int64_t rows) {
  plan_layout made;
  const auto n = static_cast<std::size_t>(positions);
  const auto take = [&made](std::size_t bytes) {
    const std::size_t at = made.bytes;
    made.bytes += (bytes + 127) / 128 * 128;
    return at;
  };
  constexpr std::size_t each = sizeof(std::int64_t);
  made.row_of = take(n * each);
  made.inverse = take(n * each);
  made.unique_rows = take(n * each);
  made.counts = take(2 * each);
  made.order = take(n * each);
  made.segment_begin = take((n + 1) * each);
  made.sorted_rows = take(n * each);
  for (auto& buffer : made.keys) buffer = take((n + 1) * each);
  made.position_bits = n == 0 ? 0 : static_cast<int>(std::bit_width(n - 1));
  made.key_bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
  // Segments and runs are counted in one half each of 64 bits.
  if (made.position_bits > 31 || made.position_bits + made.key_bits > 64)
    throw invalid_argument(
        "ferry::make_plan: " + std::to_string(positions) + " indices into " + std::to_string(rows) +
        " rows are too many for one plan: at most 2147483648, and with their rows' numbers 64 bits");
  if (positions > 0)
    made.sort_bytes =
        sort_scratch_bytes<Backend>(positions, made.position_bits, made.position_bits + made.key_bits);
  made.sort = take(made.sort_bytes);
  return made;
}

inline constexpr std::size_t plan_workspace_alignment = 16;

}  // namespace detail

/// Size in bytes of the workspace that make_plan needs for `positions` indices into tables of `rows` rows: 64
/// bytes per position for the plan's arrays, and the scratch memory of the sort. The size grows with
/// `positions` and does not depend on the values of the indices, so a workspace for the largest batch serves
/// all. Throws invalid_argument for negative numbers, and for numbers that make_plan refuses.
template <class Exec, std::integral Positions, std::integral Rows>
[[nodiscard]] std::size_t plan_workspace_bytes(const Exec& exec, Positions positions, Rows rows) {
  detail::require_execution_space<Exec>();
  if (std::cmp_less(positions, 0) || std::cmp_less(rows, 0))
    throw invalid_argument("ferry::plan_workspace_bytes: " + std::to_string(positions) + " positions and " +
                           std::to_string(rows) + " rows were given, neither may be negative");
  const typename execution_backend<Exec>::device_guard on(exec);
  return detail::layout_of_plan<execution_backend<Exec>>(static_cast<std::int64_t>(positions),
                                                         static_cast<std::int64_t>(rows))
      .bytes;
}

}  // namespace ferry
