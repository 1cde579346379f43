// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/expand_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Ranks whose shards one kernel can read. Their places are arguments of the kernel.
inline constexpr int most_shards = 64;

/// The rank that has a row.
template <class Spread>
struct shard_owner {
  Spread spread;
  std::int64_t rows;
  int ranks;

  KOKKOS_FUNCTION int operator()(std::int64_t row) const { return spread.owner(row, rows, ranks); }
};

/// Where the rows of a sharded table lie: how many units after the beginning of the lowest shard.
template <class Spread>
struct shard_places {
  Spread spread;
  std::int64_t rows;
  int ranks;
  int only;             ///< the shard that has all rows, -1 for none
  std::int64_t stride;  ///< units from a row of a shard to the next
  std::int64_t begin[most_shards];

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t row) const {
    const int from = only >= 0 ? only : spread.owner(row, rows, ranks);
    return begin[from] + spread.local_row(row, rows, ranks) * stride;
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

/// Of two neighbouring items one is a row of a plan that lies in the shard of another rank, which goes to its
/// first position; the other is a position whose row lies in the shard `own`. So each thread of a kernel that
/// takes pairs of items has a row from a link and one from its own memory under way.
template <class Spread>
struct far_heads_and_own_rows {
  segment_heads heads;
  const std::int64_t* inverse;
  shard_owner<Spread> of;
  int own;

  static constexpr std::int64_t items(std::int64_t positions) { return 2 * positions; }
  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool record) const {
    const std::int64_t p = item / 2;
    if ((item & 1) == 0) {
      const std::int64_t row = heads.row(p, record);
      return row < 0 || of(row) == own ? -1 : row;
    }
    const std::int64_t segment = inverse[p];
    if (segment < 0) return -1;
    const std::int64_t row = heads.unique_rows[segment];
    return of(row) == own ? row : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const {
    return (item & 1) == 0 ? heads.position(item / 2) : item / 2;
  }
};

/// The positions that far_heads_and_own_rows leaves out get their row from the first position of its segment.
template <class Spread>
struct other_places_of_far_rows {
  far_heads_and_own_rows<Spread> done;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t p, bool) const {
    const std::int64_t segment = done.inverse[p];
    if (segment < 0) return -1;
    const std::int64_t head = done.heads.position(segment);
    const std::int64_t row = done.heads.unique_rows[segment];
    return head == p || done.of(row) == done.own ? -1 : head;
  }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t p) { return p; }
};

}  // namespace ferry::kernels
