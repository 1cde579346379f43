// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/pool_rows.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// One of the tables of a launch.
template <class T>
struct table_entry {
  const T* data;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t column;  ///< of the pooled rows, where those of this table begin
};

/// Pools bags of several tables. Bag t * batch + b of the list is bag b of table t, and goes to row b, from
/// the table's column on.
///
/// Device mapping: as pool_rows on rows of all tables side by side. A thread finds its table by the column of
/// its tile. Host mapping: one run of rows of the batch per thread.
template <class Pool, class T>
struct pool_tables {
  static constexpr unsigned int most_threads = Pool::most_threads;
  static constexpr bool takes_runs = true;

  Pool pool;
  const table_entry<T>* tables;
  std::int64_t count;
  std::int64_t batch;

  /// Of a row of the batch; the pool has the width of all tables.
  [[nodiscard]] std::int64_t bytes_each() const {
    return (batch > 0 ? pool.bags.positions / batch + 1 : 1) * pool.width / (count > 0 ? count : 1) *
               static_cast<std::int64_t>(sizeof(T)) +
           pool.width * static_cast<std::int64_t>(sizeof(*pool.out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (pool.packed)
      one<packed_tile>(i);
    else
      one<single_tile>(i);
  }

  void operator()(const detail::host_run& run) const {
    const std::int64_t end = run.end(batch);
    for (std::int64_t b = run.begin(batch); b < end; ++b)
      for (std::int64_t t = 0; t < count; ++t)
        of_table(tables[t]).all_of(b, pool.bags.range(t * batch + b, true));
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION Pool of_table(const table_entry<T>& table) const {
    Pool made = pool;
    made.table = decltype(made.table)::of(table.data, table.stride);
    made.source.rows = table.rows;
    made.has_rows = table.rows > 0;
    made.width = table.width;
    made.out += table.column;
    return made;
  }

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t i) const {
    const std::int64_t b = pool.tiles.quotient(i);
    const std::int64_t column = (i - b * pool.tiles.divisor()) * Tile::elements;
    std::int64_t low = 0, high = count;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (tables[middle].column <= column)
        low = middle;
      else
        high = middle;
    }
    const table_entry<T> table = tables[low];
    const std::int64_t within = column - table.column;
    of_table(table).template part_of<Tile>(b, pool.bags.range(low * batch + b, within == 0), within);
  }
};

}  // namespace ferry::kernels
