// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/short_columns.hpp>

#include <ferry/error.hpp>
#include <ferry/runtime/detail/array_checks.hpp>

#include <cstdint>

namespace ferry::detail {

void require_columns(const char* verb, const untyped_array& table, std::int64_t positions,
                     const untyped_array& batch) {
  if (table.shape.rank != 2) require_dense_rows(verb, table);
  if (batch.shape.rank != 2) require_dense_rows(verb, batch);
  if (batch.shape.rows() != positions)
    throw invalid_argument(joined("ferry::", verb, ": ", counted(positions, "index was", "indices were"),
                                  " given for the ", counted(batch.shape.rows(), "row", "rows"), " of ",
                                  batch.note().describe()));
  if (batch.shape.width() != table.shape.width())
    throw invalid_argument(joined("ferry::", verb, ": rows of ", table.note().describe(), " have ",
                                  table.shape.width(), " elements, rows of ", batch.note().describe(),
                                  " have ", batch.shape.width()));
}

void refuse_overlap(const char* verb, const untyped_array& table, const untyped_array& batch) {
  throw invalid_argument(joined("ferry::", verb, ": ", batch.note().describe(), " and ",
                                table.note().describe(), " overlap in memory"));
}

}  // namespace ferry::detail
