// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/distributed/sharded/detail/divided.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>

/// How the rows of a sharded_table are spread over the ranks of its group, see ferry::Sharding.
namespace ferry::sharding {

/// The default: row r lies on rank r mod N. Rows that are ordered by frequency, as vocabularies are, load all
/// ranks alike.
struct cyclic {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::cyclic";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t, int ranks) const {
    return static_cast<int>(kernels::divided(row, ranks).rest);
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int ranks) const {
    return kernels::divided(row, ranks).quotient;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    return (rows + ranks - 1 - rank) / ranks;
  }
  [[nodiscard]] kernels::global_rows global_rows(int rank, std::int64_t, int ranks) const {
    return {rank, ranks, {}};
  }
  /// @}
};
static_assert(Sharding<cyclic>);

}  // namespace ferry::sharding
