// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The positions whose values are encoded, and the record of each.
///
/// By a plan: of each row the first position or the last one. Without a plan: all positions. Into a table:
/// the record of a position is that of its row, and a batch that was found faulty writes none. Without a
/// table: its numbers.
struct deciding_positions {
  const std::int64_t* inverse = nullptr;
  const std::int64_t* segment_begin = nullptr;
  const std::int64_t* order = nullptr;
  bool last = false;
  const std::int64_t* value_rows = nullptr;  ///< row of the values for each place of `order`; null: `order`
  const std::int64_t* table_rows = nullptr;  ///< row of each position, -1 if it has none; null: no table
  const ferry::detail::index_report* findings = nullptr;  ///< null: indices are not checked
  const ferry::detail::index_report* repeats = nullptr;   ///< null: duplicates are not checked

  /// The row of the values of a position, -1 if the position decides nothing.
  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool) const {
    const std::int64_t record = this->position(position);  // loaded next to the findings
    if ((findings != nullptr && findings->out_of_range != 0) ||
        (repeats != nullptr && repeats->duplicates != 0) || record < 0)
      return -1;
    if (inverse == nullptr) return position;
    const std::int64_t segment = inverse[position];
    if (segment < 0) return -1;
    const std::int64_t place = last ? segment_begin[segment + 1] - 1 : segment_begin[segment];
    if (order[place] != position) return -1;
    return value_rows == nullptr ? position : value_rows[place];
  }
  /// Its record.
  KOKKOS_FUNCTION std::int64_t position(std::int64_t position) const {
    return table_rows == nullptr ? position : table_rows[position];
  }
};

}  // namespace ferry::kernels
