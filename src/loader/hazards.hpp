// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The unique rows of a plan: ascending, `*count` of them.
struct sorted_rows {
  const std::int64_t* rows = nullptr;
  const std::int64_t* count = nullptr;

  KOKKOS_FUNCTION bool contains(std::int64_t row) const {
    std::int64_t begin = 0, end = *count;
    while (begin < end) {
      const std::int64_t middle = begin + (end - begin) / 2;
      if (rows[middle] < row)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin < *count && rows[begin] == row;
  }
};

/// How many steps may lie between the gather of a batch and its use.
inline constexpr int most_ahead = 8;

/// Splits the rows of a batch: those that no step of the window updates are read early, the others late. One
/// thread per position; -1 in a list leaves the position to the other one.
struct split_hazards {
  const std::int64_t* row_of;  ///< of each position; -1 for none
  sorted_rows window[most_ahead];
  int steps;
  std::int64_t* early;
  std::int64_t* late;

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    const std::int64_t row = row_of[position];
    bool hit = false;
    for (int i = 0; i < steps && !hit; ++i) hit = window[i].contains(row);
    early[position] = hit ? -1 : row;
    late[position] = hit ? row : -1;
  }
};

}  // namespace ferry::kernels
