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

/// Item p is position p of a plan. It gets the row of its segment if that row lies in the shard `own`, or if it
/// is the first position of the segment: own rows are cheap to read, others cross a link once.
template <class Spread>
struct own_rows_and_heads {
  segment_heads heads;
  const std::int64_t* inverse;
  shard_owner<Spread> of;
  int own;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t p, bool) const {
    const std::int64_t segment = inverse[p];
    if (segment < 0) return -1;
    const std::int64_t row = heads.unique_rows[segment];
    const std::int64_t head = heads.position(segment);
    return of(row) == own || head == p ? row : -1;
  }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t p) { return p; }
};

/// The positions that own_rows_and_heads leaves out get their row from the first position of its segment.
template <class Spread>
struct other_places_of_far_rows {
  own_rows_and_heads<Spread> done;

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
