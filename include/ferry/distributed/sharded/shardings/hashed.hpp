// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/distributed/sharded/detail/divided.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::sharding {

/// The rows in an order that a seed chooses, a bijection of the row numbers, then as sharding::cyclic: loads
/// the ranks alike if frequent rows have a pattern of their own. Shards differ by one row at most.
template <std::uint64_t Seed = 0>
struct hashed {
  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::hashed";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    return static_cast<int>(kernels::divided(place(row, rows), ranks).rest);
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t rows, int ranks) const {
    return kernels::divided(place(row, rows), ranks).quotient;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    return (rows + ranks - 1 - rank) / ranks;
  }
  [[nodiscard]] kernels::global_rows global_rows(int rank, std::int64_t rows, int ranks) const {
    return {rank, ranks, kernels::row_scramble(rows, Seed)};
  }
  /// @}

 private:
  KOKKOS_FUNCTION static std::int64_t place(std::int64_t row, std::int64_t rows) {
    return kernels::row_scramble(rows, Seed).forward(row);
  }
};
static_assert(Sharding<hashed<>>);

}  // namespace ferry::sharding
