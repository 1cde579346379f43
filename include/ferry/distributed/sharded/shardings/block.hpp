// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/distributed/sharded/detail/divided.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace ferry::sharding {

/// Rank 0 has the first rows / N rows, rounded up, rank 1 the next ones, and so on; the last ranks may have
/// fewer. For rows whose neighbours are used together.
struct block {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::block";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    return static_cast<int>(kernels::divided(row, rows_per_rank(rows, ranks)).quotient);
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t rows, int ranks) const {
    return kernels::divided(row, rows_per_rank(rows, ranks)).rest;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    return std::clamp(rows - rank * rows_per_rank(rows, ranks), std::int64_t{0}, rows_per_rank(rows, ranks));
  }
  [[nodiscard]] kernels::global_rows global_rows(int rank, std::int64_t rows, int ranks) const {
    return {rank * rows_per_rank(rows, ranks), 1, {}};
  }
  /// @}

 private:
  KOKKOS_FUNCTION static std::int64_t rows_per_rank(std::int64_t rows, int ranks) {
    return rows == 0 ? 1 : kernels::divided(rows + ranks - 1, ranks).quotient;
  }
};
static_assert(Sharding<block>);

}  // namespace ferry::sharding
