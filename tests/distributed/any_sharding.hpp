// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string_view>

namespace ferry_test {

/// One of the shardings, chosen at run time. Verbs look at the constants of a sharding's type and call its
/// functions, so this type compiles once what four types would compile four times.
struct any_sharding {
  enum class kind { cyclic, block, hashed, table_wise };
  kind chosen = kind::cyclic;
  int holder = 0;  ///< the rank of table_wise

  static constexpr std::string_view name = "any_sharding";
  static constexpr bool replicates = false;
  static constexpr bool in_kernels = true;

  void check(int ranks) const {
    if (chosen == kind::table_wise) ferry::sharding::table_wise{.rank = holder}.check(ranks);
  }
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    switch (chosen) {
      case kind::block:
        return ferry::sharding::block{}.owner(row, rows, ranks);
      case kind::hashed:
        return ferry::sharding::hashed<7>{}.owner(row, rows, ranks);
      case kind::table_wise:
        return ferry::sharding::table_wise{.rank = holder}.owner(row, rows, ranks);
      default:
        return ferry::sharding::cyclic{}.owner(row, rows, ranks);
    }
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t rows, int ranks) const {
    switch (chosen) {
      case kind::block:
        return ferry::sharding::block{}.local_row(row, rows, ranks);
      case kind::hashed:
        return ferry::sharding::hashed<7>{}.local_row(row, rows, ranks);
      case kind::table_wise:
        return ferry::sharding::table_wise{.rank = holder}.local_row(row, rows, ranks);
      default:
        return ferry::sharding::cyclic{}.local_row(row, rows, ranks);
    }
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    switch (chosen) {
      case kind::block:
        return ferry::sharding::block{}.rows_of(rank, rows, ranks);
      case kind::hashed:
        return ferry::sharding::hashed<7>{}.rows_of(rank, rows, ranks);
      case kind::table_wise:
        return ferry::sharding::table_wise{.rank = holder}.rows_of(rank, rows, ranks);
      default:
        return ferry::sharding::cyclic{}.rows_of(rank, rows, ranks);
    }
  }
  [[nodiscard]] ferry::kernels::global_rows global_rows(int rank, std::int64_t rows, int ranks) const {
    switch (chosen) {
      case kind::block:
        return ferry::sharding::block{}.global_rows(rank, rows, ranks);
      case kind::hashed:
        return ferry::sharding::hashed<7>{}.global_rows(rank, rows, ranks);
      case kind::table_wise:
        return ferry::sharding::table_wise{.rank = holder}.global_rows(rank, rows, ranks);
      default:
        return ferry::sharding::cyclic{}.global_rows(rank, rows, ranks);
    }
  }
};
static_assert(ferry::Sharding<any_sharding>);

/// A sharding whose owners kernels do not find: the host routes its batches, and rows go by lists.
struct host_sharding : any_sharding {
  static constexpr std::string_view name = "host_sharding";
  static constexpr bool in_kernels = false;
};
static_assert(ferry::Sharding<host_sharding>);

}  // namespace ferry_test
