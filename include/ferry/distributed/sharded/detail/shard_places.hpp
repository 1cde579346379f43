// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Ranks whose shards one kernel can read. Their places are arguments of the kernel.
inline constexpr int most_shards = 64;

/// The places of the rows of a sharded table: how many units after the beginning of the lowest shard.
template <class Spread>
struct shard_places {
  Spread spread;
  std::int64_t rows;
  int ranks;
  int only;             ///< the shard that has all rows, -1 for none
  std::int64_t stride;  ///< units from a row of a shard to the next
  std::int64_t begin[most_shards];

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t row) const {
    const int owner = only >= 0 ? only : spread.owner(row, rows, ranks);
    return begin[owner] + spread.local_row(row, rows, ranks) * stride;
  }
};

/// A source of rows of a sharded table for the kernels that gather. Its rows are the places of the rows, so
/// the table's stride is one unit.
template <class Source, class Spread>
struct rows_of_shards {
  Source source;
  shard_places<Spread> places;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool record) const {
    const std::int64_t row = source.row(item, record);
    return row < 0 ? row : places(row);
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const { return source.position(item); }
};

}  // namespace ferry::kernels
