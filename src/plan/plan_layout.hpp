// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sort_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

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

  /// The arrays, without the scratch memory of the sort. Throws invalid_argument for too many positions.
  static plan_layout of_arrays(std::int64_t positions, std::int64_t rows);
  /// Adds an array. Returns its offset.
  std::size_t take(std::size_t size);
};

/// Scratch bytes of the sort: none if the backend compares all keys.
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
  plan_layout layout = plan_layout::of_arrays(positions, rows);
  if (positions > 0)
    layout.sort_bytes =
        sort_scratch_bytes<Backend>(positions, layout.position_bits, layout.position_bits + layout.key_bits);
  layout.sort = layout.take(layout.sort_bytes);
  return layout;
}

}  // namespace ferry::detail
