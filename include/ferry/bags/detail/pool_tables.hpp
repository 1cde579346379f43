// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_terms.hpp>
#include <ferry/bags/detail/pool_rows.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// index_rows of a list of tables, whose report says in which bag of the list a bad index is.
template <class Index, class Bounds>
struct bag_index_rows : index_rows<Index, Bounds> {
  using bounds_type = Bounds;

  std::int64_t bag = 0;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool record) const {
    const std::int64_t table_row = index_rows<Index, Bounds>::row(position, false);
    if constexpr (Bounds::reports)
      if (table_row < 0 && record) report_out_of_range(position);
    return table_row;
  }
  KOKKOS_FUNCTION void report_out_of_range(std::int64_t position) const {
    this->report.out_of_range(
        position, static_cast<std::uint64_t>(static_cast<std::int64_t>(this->indices[position])), bag);
  }
};
template <class Index, class Bounds>
inline constexpr bool may_miss<bag_index_rows<Index, Bounds>> = may_miss<index_rows<Index, Bounds>>;
template <class Index, class Bounds>
inline constexpr bool always_strict<bag_index_rows<Index, Bounds>> = always_strict<index_rows<Index, Bounds>>;
template <class Index, class Bounds>
inline constexpr bool returns_first<bag_index_rows<Index, Bounds>> = returns_first<index_rows<Index, Bounds>>;

/// One of the tables of a launch. A kind of entry has rows, width, column, and place(terms), which lets the
/// terms of a pool read its rows.
template <class T>
struct table_entry {
  using value_type = T;

  const T* data;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t column;  ///< of the pooled rows, where those of this table begin

  template <class Terms>
  KOKKOS_FORCEINLINE_FUNCTION void place(Terms& terms) const {
    terms.table = decltype(terms.table)::of(data, stride);
  }
};

/// Pools bags of several tables. Bag t * batch + b of the list is bag b of table t, and goes to row b, from
/// the table's column on.
///
/// Device mapping: as pool_rows on rows of all tables side by side. A thread finds its table by the column of
/// its tile. Host mapping: one run of rows of the batch per thread.
///
/// Bounds that Clamp give an index a row in any case. If the table has none, the index is reported, and the
/// part of the row keeps its contents.
template <class Pool, class Entry, bool Clamp>
struct pool_tables {
  static constexpr unsigned int most_threads = Pool::most_threads;
  static constexpr unsigned int blocks_at_once = 4;  ///< see launch: 64 registers
  static constexpr bool takes_runs = true;

  Pool pool;
  const Entry* tables;
  std::int64_t count;
  std::int64_t batch;

  /// Of a row of the batch; the pool has the width of all tables.
  [[nodiscard]] std::int64_t bytes_each() const {
    return (batch > 0 ? pool.bags.positions / batch + 1 : 1) * pool.terms.width / (count > 0 ? count : 1) *
               static_cast<std::int64_t>(sizeof(typename Entry::value_type)) +
           pool.terms.width * static_cast<std::int64_t>(sizeof(*pool.out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (pool.packed)
      pool_item<packed_tile>(i);
    else
      pool_item<single_tile>(i);
  }

  void operator()(const detail::host_run& run) const {
    const std::int64_t end = run.end(batch);
    for (std::int64_t b = run.begin(batch); b < end; ++b)
      for (std::int64_t t = 0; t < count; ++t) {
        const Pool table_pool = of_table(tables[t], t * batch + b);
        const bag_range range = pool.bags.range(t * batch + b, true);
        if (!lacks_row(table_pool, range, true)) table_pool.all_of(b, range);
      }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION Pool of_table(const Entry& table, std::int64_t bag) const {
    Pool table_pool = pool;
    table_pool.terms.source.bag = bag;
    table.place(table_pool.terms);
    table_pool.terms.source.rows = table.rows;
    table_pool.has_rows = table.rows > 0;
    table_pool.terms.width = table.width;
    table_pool.out += table.column;
    return table_pool;
  }

  /// True if there is no row to clamp an index of the bag to.
  KOKKOS_FORCEINLINE_FUNCTION static bool lacks_row([[maybe_unused]] const Pool& table_pool,
                                                    [[maybe_unused]] const bag_range& range,
                                                    [[maybe_unused]] bool record) {
    if constexpr (Clamp)
      if (!table_pool.has_rows && range.begin < range.end) {
        for (std::int64_t k = range.begin; record && k < range.end; ++k)
          table_pool.terms.source.report_out_of_range(k);
        return true;
      }
    return false;
  }

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void pool_item(std::int64_t i) const {
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
    const Entry table = tables[low];
    const std::int64_t table_column = column - table.column;
    const std::int64_t bag = low * batch + b;
    const Pool table_pool = of_table(table, bag);
    const bag_range range = pool.bags.range(bag, table_column == 0);
    if (!lacks_row(table_pool, range, table_column == 0))
      table_pool.template part_of<Tile>(b, range, table_column);
  }
};

}  // namespace ferry::kernels
