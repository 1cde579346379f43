// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::sharding {

/// Every rank has all rows: a gather needs no other rank, and writes send each batch to all ranks, which
/// apply the same updates. For small tables.
struct replicated {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::replicated";
  static constexpr bool replicates = true;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return row;
  }
  [[nodiscard]] std::int64_t rows_of(int, std::int64_t rows, int) const { return rows; }
  [[nodiscard]] kernels::global_rows global_rows(int, std::int64_t, int) const { return {}; }
  /// @}
};
static_assert(Sharding<replicated>);

}  // namespace ferry::sharding
