// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/error.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::sharding {

/// One rank has the whole table: for many tables that are spread over the ranks one by one.
///
///   sharded_table<float, mapped_space, sharding::table_wise> t("t", comm, rows, 64, {.rank = 2});
struct table_wise {
  int rank = 0;  ///< the owner

  /// Facts about the sharding, see ferry::Sharding.
  /// @{
  static constexpr std::string_view name = "sharding::table_wise";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;
  void check(int ranks) const {
    if (rank < 0 || rank >= ranks)
      throw invalid_argument(ferry::detail::joined("ferry::sharding::table_wise: rank ", rank,
                                                   " is none of the ", ranks, " ranks of the group"));
  }
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t, std::int64_t, int) const { return rank; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return row;
  }
  [[nodiscard]] std::int64_t rows_of(int owner, std::int64_t rows, int) const {
    return owner == rank ? rows : 0;
  }
  [[nodiscard]] kernels::global_rows global_rows(int, std::int64_t, int) const { return {}; }
  /// @}
};
static_assert(Sharding<table_wise>);

}  // namespace ferry::sharding
