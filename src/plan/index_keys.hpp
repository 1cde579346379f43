// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/own_bounds.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The keys that sort the positions of a batch by row: (row, position). A position without a row gets `rows`
/// as its row and is sorted after all others.
namespace ferry::kernels {

KOKKOS_FUNCTION inline std::uint64_t key_of_row(std::int64_t row, std::int64_t rows, std::int64_t position,
                                                int position_bits) {
  return static_cast<std::uint64_t>(row < 0 ? rows : row) << position_bits |
         static_cast<std::uint64_t>(position);
}

/// Resolves raw indices to rows and keys. A call with `record` also stores the row and reports a bad index.
template <class Index, class Bounds>
struct row_keys {
  index_rows<Index, Bounds> source;
  std::int64_t* row_of;
  int position_bits;
  std::int64_t* long_found = nullptr;  ///< see place_segments, set to 0; or null

  KOKKOS_FUNCTION std::uint64_t operator()(std::int64_t i, bool record = true) const {
    const std::int64_t row = source.row(i, record);
    if (record) row_of[i] = row;
    if (record && i == 0 && long_found != nullptr) *long_found = 0;
    return key_of_row(row, source.rows, i, position_bits);
  }
};

/// As row_keys for the library's own policies, with index type and policy as values: one kernel serves them
/// all.
struct any_row_keys {
  const void* indices = nullptr;
  int index_bytes = 8;
  bool is_signed = true;
  bool reports = false;
  bool clamps = false;
  bool checks = true;
  std::int64_t rows = 0;
  ferry::detail::report_writer report;
  std::int64_t* row_of = nullptr;
  int position_bits = 0;
  std::int64_t* long_found = nullptr;  ///< as that of row_keys

  /// The bits of an index, sign-extended. As an unsigned number they are below `rows` if and only if the index
  /// is in [0, rows).
  [[nodiscard]] KOKKOS_FUNCTION std::uint64_t bits(std::int64_t i) const {
    if (index_bytes == 8) return static_cast<const std::uint64_t*>(indices)[i];
    if (is_signed)
      return static_cast<std::uint64_t>(std::int64_t{static_cast<const std::int32_t*>(indices)[i]});
    return static_cast<const std::uint32_t*>(indices)[i];
  }

  KOKKOS_FUNCTION std::uint64_t operator()(std::int64_t i, bool record) const {
    const std::uint64_t index = bits(i);
    auto row = static_cast<std::int64_t>(index);
    if (checks && index >= static_cast<std::uint64_t>(rows)) {
      if (clamps)
        row = is_signed && row < 0 ? 0 : rows - 1;
      else
        row = -1;
      if (reports && record) report.out_of_range(i, index);
    }
    if (record) row_of[i] = row;
    if (record && i == 0 && long_found != nullptr) *long_found = 0;
    return key_of_row(row, rows, i, position_bits);
  }
};

}  // namespace ferry::kernels
