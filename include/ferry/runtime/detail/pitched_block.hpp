// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ferry {

/// Rows of equal length at equal distances, in slices at equal distances: what a 2-d or 3-d transfer moves.
/// Distances are in bytes and at least as large as what they separate.
struct pitched_block {
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 1;  ///< of a slice
  std::size_t slices = 1;
  std::size_t target_pitch = 0;  ///< from one row to the next
  std::size_t source_pitch = 0;  ///< likewise
  std::size_t target_slice = 0;  ///< from one slice to the next
  std::size_t source_slice = 0;  ///< likewise
};

}  // namespace ferry
