// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_terms.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/bags/detail/pool_rows.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

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

/// One of the tables of a launch. A kind of entry has rows, width, column, and bind(terms), which lets the
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
  KOKKOS_FORCEINLINE_FUNCTION void bind(Terms& terms) const {
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

  /// Bytes that a row of the batch reads and writes; the pool has the width of all tables.
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
    table.bind(table_pool.terms);
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
    const std::int64_t low = last_that(0, count, [&](std::int64_t t) { return tables[t].column <= column; });
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

/// The path of gather_bags on several tables, from its arguments to pool_tables.
namespace ferry::detail {

template <class Exec, class T, class Space, class Indices, class Offsets, class Pooled, class Bag>
consteval void require_table_list() {
  using chosen = typename Bag::chosen;
  require_row_verb<Exec, tensor<std::remove_const_t<T>, Space>, Indices, Pooled, chosen, false>();
  require_offsets<Exec, Offsets>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  static_assert(
      !is_plan<Indices>,
      "ferry: a plan is for tables of one number of rows; give gather_bags on several tables the indices.");
  static_assert(
      path_policy::chosen_at_run_time || in_batch_order<path_policy>,
      "ferry: gather_bags on several tables is one launch of the execution space, so it takes path::direct only.");
  static_assert(
      NumberElement<std::remove_const_t<T>> && NumberElement<typename traits_of<Pooled>::value_type>,
      "ferry: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers.");
}

/// Enqueues the pools of bags of several tables. `source` gives the rows of positions, `bags` has the bags of
/// all tables. `packed`: the rows of all consist of whole packets.
template <class Bag, class Exec, class Entry, class Source, class Bags, class Weights, class Out,
          class OutSpace>
void launch_pool_of_tables(launch_context<Exec>& call, const std::string& label,
                           const std::vector<Entry>& entries, const Source& source, const Bags& bags,
                           std::int64_t positions, const Weights& weights, bool packed,
                           const array_ref<Out, OutSpace>& out) {
  using bounds_policy = typename Source::bounds_type;
  using table_type = typename Entry::value_type;
  const auto count = static_cast<std::int64_t>(entries.size());
  const std::int64_t batch = out.rows(), width = out.width();
  auto list_of_entries = dense_rows<const Entry, pageable_space>(entries.data(), count, 1, "tables");
  list_of_entries.rank = 1;
  const Entry* entry_list = indices_for_kernels(call, list_of_entries);
  const auto list = bags_for_kernels(call, bags, batch * count, positions,
                                     !std::is_same_v<bounds_policy, bounds::unchecked>);
  const auto* scale = weights_for_kernels(call, weights);
  using weight = std::remove_const_t<std::remove_pointer_t<decltype(scale)>>;
  using number = exact_number<Exec, pooling_type<table_type, weight, Out>>;
  using table_rows = kernels::pooled_table<table_type>;
  using pool = kernels::pool_rows<number, typename Bag::pooling, table_rows, Source, offset_type<Bags>,
                                  weight, Out, void>;
  const bool in_tiles = packed && in_packets<kernels::packed_tile::elements>(out);
  const std::int64_t tiles = in_tiles ? width / kernels::packed_tile::elements : width;
  const pool functor{{table_rows::of(nullptr, 0), source, scale, width, positions},
                     list,
                     out.data,
                     out.row_stride(),
                     nullptr,
                     0,
                     fast_divisor(tiles),
                     in_tiles,
                     false,
                     bounds_policy::reports,
                     true,
                     nullptr};
  constexpr bool clamps = std::is_same_v<bounds_policy, bounds::clamp>;
  launch(call.exec(), label, schedule::flat{}, batch, is_host_exec<Exec> ? 1 : tiles,
         kernels::pool_tables<pool, Entry, clamps>{functor, entry_list, count, batch});
}

/// The rows of the positions of bags of several tables. `lacks_rows`: true if a table does.
template <class Source, class Exec, class Index, class Space>
Source source_of_tables(launch_context<Exec>& call, const array_ref<Index, Space>& indices, bool lacks_rows) {
  using bounds_policy = typename Source::bounds_type;
  Source source;
  static_cast<kernels::index_rows<std::remove_const_t<Index>, bounds_policy>&>(source) =
      rows_for_kernels<bounds_policy>(call, indices, 0);
  if (std::is_same_v<bounds_policy, bounds::clamp> && lacks_rows) source.report = call.report();
  return source;
}

template <class Bag, class Exec, class T, class Space, class Index, class IndexSpace, class Bags,
          class Weights, class Out, class OutSpace>
ticket gather_tables(const Exec& exec, const std::vector<array_ref<T, Space>>& tables,
                     const array_ref<Index, IndexSpace>& indices, const Bags& bags, const Weights& weights,
                     const array_ref<Out, OutSpace>& out) {
  const char* verb = "gather_bags";
  using table_type = std::remove_const_t<T>;
  using plain = std::remove_const_t<Index>;
  using entry = kernels::table_entry<table_type>;
  using bounds_policy = typename Bag::chosen::template get<bounds_category, bounds::check>;
  const auto count = static_cast<std::int64_t>(tables.size());
  const std::int64_t batch = out.rows(), positions = indices.rows();
  require_rank_one(verb, indices);
  const auto columns = columns_of_tables(verb, std::vector<untyped_array>(tables.begin(), tables.end()), out);
  std::vector<entry> entries;
  bool some_empty = false, packed = true;
  for (const auto& table : tables) {
    some_empty = some_empty || table.rows() == 0;
    entries.push_back({table.data, table.row_stride(), table.rows(), table.width(), columns[entries.size()]});
    packed = packed && in_packets<kernels::packed_tile::elements>(table);
  }
  require_bags(verb, bags, positions, out, count);
  if constexpr (!std::is_same_v<Weights, no_array>) require_weights(verb, weights, positions);

  launch_context<Exec> call(exec, verb);
  if constexpr (!is_host_exec<Exec>)
    call.refuse_capture("but the list of tables would be read once only; pool the tables one by one there");
  const std::string& label = call.label("tables");
  if (batch != 0) {
    require_direct_reach(verb, exec, out);
    for (const auto& table : tables) {
      require_direct_reach(verb, exec, table);
      call.reads_from(table);
    }
    call.writes_to(out);
    launch_pool_of_tables<Bag>(
        call, label, entries,
        source_of_tables<kernels::bag_index_rows<plain, bounds_policy>>(call, indices, some_empty), bags,
        positions, weights, packed, out);
  }
  call.name_tables(descriptions_of(tables, batch));
  return call.finish(tables.front(), positions, std::is_signed_v<plain>);
}

}  // namespace ferry::detail
