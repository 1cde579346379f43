// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

/// Writing kernels on several tables. A plan numbers the rows of all tables one after the other, and each
/// table has a kernel of its own, with its pointers, width, strides and options, in an array. One launch
/// finds the kernel of each item's row and runs it on the row as a batch of one item. Hence the bits of a
/// launch for each table.
namespace ferry::kernels {

/// The numbers of the rows of several tables: table t has [first_row[t], first_row[t + 1]).
struct table_ranges {
  const std::int64_t* first_row = nullptr;  ///< one for each table, and the end
  std::int64_t tables = 0;

  /// The table of a row: of those that begin there or before, the last.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t table_of(std::int64_t row) const {
    return last_that(0, tables, [&](std::int64_t i) { return first_row[i] <= row; });
  }
};

/// Some items of a plan of several tables, all of one table, whose rows have that table's numbers.
template <class Rows>
struct rows_of_table : Rows {
  using rows_type = Rows;

  std::int64_t first_row;  ///< the number of the table's row 0
  std::int64_t first = 0;  ///< the first item
  std::int64_t count = 0;

  KOKKOS_FUNCTION std::int64_t items(std::int64_t) const { return count; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const {
    return i < count ? segment_within(i) : row_segment{};
  }
  KOKKOS_FUNCTION row_segment segment_within(std::int64_t i) const {
    row_segment rows = Rows::segment_within(first + i);
    rows.row -= first_row;
    return rows;
  }
};

/// The kernels of a launch on several tables, one for each, and their source: arguments of a launch cost a
/// device's threads no loads.
template <class Kernel>
struct kernels_of_tables {
  using source_type = decltype(Kernel::source);

  const Kernel* kernels;
  table_ranges tables;
  typename source_type::rows_type source;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool has(std::int64_t item) const {
    return item < *source.unique_count;
  }
  /// The kernel of the item's table, which has this item alone.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION Kernel kernel_of(std::int64_t item) const {
    return kernel_of(tables.table_of(source.unique_rows[item]), item, 1);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION Kernel kernel_of(std::int64_t table, std::int64_t item,
                                                             std::int64_t count) const {
    Kernel kernel = kernels[table];
    kernel.source = source_type{source, kernel.source.first_row, item, count};
    return kernel;
  }
  /// The end of the items from `item` on, but before `end`, that are of the table.
  [[nodiscard]] std::int64_t end_of(std::int64_t table, std::int64_t item, std::int64_t end) const {
    const std::int64_t limit = tables.first_row[table + 1];
    return last_that(item, end, [&](std::int64_t i) { return source.unique_rows[i] < limit; }) + 1;
  }
};

/// apply_rows on several tables. Device mapping: one thread per (item, tile), row-major, with the tiles of
/// the widest rows; threads beyond the tiles of a row end at once. Host mapping: one run of items per thread.
/// Each table's kernel takes the part of the run that has its rows.
template <class Kernel>
struct each_table {
  static constexpr unsigned int most_threads = Kernel::most_threads;
  static constexpr bool takes_runs = Kernel::takes_runs;

  kernels_of_tables<Kernel> list;
  std::int64_t items;
  ferry::detail::fast_divisor tiles;
  std::int64_t item_bytes;

  each_table(const kernels_of_tables<Kernel>& launched, const Kernel* on_host, std::int64_t item_count)
      : list(launched), items(item_count), item_bytes(0) {
    std::int64_t most = 1;
    for (std::int64_t t = 0; t < launched.tables.tables; ++t) {
      most = most < on_host[t].per_item() ? on_host[t].per_item() : most;
      item_bytes = item_bytes < on_host[t].bytes_each() ? on_host[t].bytes_each() : item_bytes;
    }
    tiles = ferry::detail::fast_divisor(most);
  }

  [[nodiscard]] std::int64_t per_item() const { return tiles.divisor(); }
  [[nodiscard]] std::int64_t bytes_each() const { return item_bytes; }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = tiles.quotient(i);
    if (!list.has(item)) return;
    const Kernel kernel = list.kernel_of(item);
    const std::int64_t tile = i - item * tiles.divisor();
    if (tile < kernel.tiles.divisor()) kernel(tile);
  }

  void operator()(const ferry::detail::host_run& run) const {
    const std::int64_t count = *list.source.unique_count;
    const std::int64_t end = run.end(count);
    for (std::int64_t item = run.begin(count); item < end;) {
      const std::int64_t table = list.tables.table_of(list.source.unique_rows[item]);
      const std::int64_t next = list.end_of(table, item, end);
      list.kernel_of(table, item, next - item)(ferry::detail::host_run{0, 1});
      item = next;
    }
  }
};

/// Kernels whose teams take whole rows, with the vector lanes of the widest.
template <class Kernel>
  requires(Kernel::takes_teams)
struct each_table<Kernel> {
  static constexpr bool takes_teams = true;

  kernels_of_tables<Kernel> list;
  std::int64_t items;
  int most_lanes = 1;
  std::int64_t item_bytes = 0;

  each_table(const kernels_of_tables<Kernel>& launched, const Kernel* on_host, std::int64_t item_count)
      : list(launched), items(item_count) {
    for (std::int64_t t = 0; t < launched.tables.tables; ++t) {
      most_lanes = most_lanes < on_host[t].lanes() ? on_host[t].lanes() : most_lanes;
      item_bytes = item_bytes < on_host[t].bytes_each() ? on_host[t].bytes_each() : item_bytes;
    }
  }

  [[nodiscard]] static std::int64_t per_item() { return 1; }
  [[nodiscard]] int lanes() const { return most_lanes; }
  [[nodiscard]] std::int64_t bytes_each() const { return item_bytes; }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    if (list.has(item)) list.kernel_of(item)(std::int64_t{0});
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t count = *list.source.unique_count;
    const std::int64_t teams = team.league_size();
    const std::int64_t end = count * (team.league_rank() + 1) / teams;
    for (std::int64_t item = count * team.league_rank() / teams + team.team_rank(); item < end;
         item += team.team_size())
      list.kernel_of(item).update_item(team, 0);
  }
};

/// Kernels that count the steps of rows. One thread per item.
template <class Kernel>
struct count_each_table {
  kernels_of_tables<Kernel> list;

  static std::int64_t bytes_each() { return Kernel::bytes_each() + std::int64_t{sizeof(std::int64_t)}; }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    if (list.has(item)) list.kernel_of(item)(std::int64_t{0});
  }
};

/// The columns of the values that rows of several tables have.
struct table_columns {
  table_ranges tables;
  const column_range* columns;  ///< one for each table

  [[nodiscard]] KOKKOS_FUNCTION column_range of_row(std::int64_t row) const {
    return columns[tables.table_of(row)];
  }
};

/// Gives each position the number of its row among the rows of all tables, -1 for none. One thread per
/// position. Bad indices are reported with their bag.
///
/// Bounds that Clamp give an index a row in any case. If the table has none, the index is reported.
template <class Index, class Bounds, class Offset, bool Clamp>
struct resolve_in_tables {
  index_rows<Index, Bounds> source;  ///< without the rows of a table
  ferry::detail::report_writer report;
  bag_list<Offset> bags;
  ferry::detail::fast_divisor batch;
  table_ranges tables;
  std::int64_t* row_of;

  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    const std::int64_t bag = bags.bag_of(position);
    const std::int64_t table = batch.quotient(bag);
    auto of_table = source;
    of_table.rows = tables.first_row[table + 1] - tables.first_row[table];
    // Bad offsets may name a table without rows, which a policy must not see.
    const bool lacks_rows = of_table.rows == 0;
    const std::int64_t row = lacks_rows ? -1 : of_table.row(position, false);
    if ((Bounds::reports || (Clamp && lacks_rows)) && row < 0)
      report.out_of_range(
          position, static_cast<std::uint64_t>(static_cast<std::int64_t>(source.indices[position])), bag);
    row_of[position] = row < 0 ? -1 : tables.first_row[table] + row;
  }
};

}  // namespace ferry::kernels
