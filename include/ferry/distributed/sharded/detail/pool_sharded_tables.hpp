// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/each_table.hpp>
#include <ferry/bags/detail/gather_tables.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/bag_route.hpp>
#include <ferry/distributed/sharded/detail/gather_together.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/reach_shards.hpp>
#include <ferry/distributed/sharded/detail/route_tables.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::kernels {

/// The places of rows of one of several sharded tables, see rows_of_shards.
template <class Index, class Bounds, class Spread>
struct shard_index_rows : bag_index_rows<Index, Bounds> {
  const shard_places<Spread>* places = nullptr;  ///< of the table

  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool record) const {
    const std::int64_t row = bag_index_rows<Index, Bounds>::row(position, record);
    return row < 0 ? row : (*places)(row);
  }
};
template <class Index, class Bounds, class Spread>
inline constexpr bool may_miss<shard_index_rows<Index, Bounds, Spread>> = may_miss<index_rows<Index, Bounds>>;
template <class Index, class Bounds, class Spread>
inline constexpr bool always_strict<shard_index_rows<Index, Bounds, Spread>> =
    always_strict<index_rows<Index, Bounds>>;

/// One of the sharded tables of a launch, as table_entry.
template <class T, class Spread>
struct shards_entry {
  using value_type = T;

  const T* lowest;
  const shard_places<Spread>* places;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t column;

  template <class Terms>
  KOKKOS_FORCEINLINE_FUNCTION void bind(Terms& terms) const {
    terms.table = decltype(terms.table)::of(lowest, 1);
    terms.source.places = places;
  }
};

/// out[k] = row rows[k] of the shards of several tables, which have numbers one table after the other, and
/// zeros after it. One thread for each element, row-major.
template <class T>
struct read_shards {
  table_ranges tables;
  const table_entry<T>* shards;
  const std::int64_t* rows;
  T* out;
  detail::fast_divisor width;

  static std::int64_t bytes_each() { return 2 * sizeof(T); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = width.quotient(i);
    const std::int64_t column = i - item * width.divisor(), row = rows[item];
    const std::int64_t table = tables.table_of(row);
    const table_entry<T> shard = shards[table];
    out[i] = column < shard.width ? shard.data[(row - tables.first_row[table]) * shard.stride + column]
                                  : convert<T>(0.0f);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// gather_bags from several sharded tables: by one kernel that reads the shards of all ranks, or of rows that
/// their owners send. The ranks meet as often as for one table. `extra`: no_array, or the weights.
template <class Bag, class Exec, class Table, class Named, class Bags, class Out, class Extra>
struct sharded_tables_pool : sharded_call<Exec, joined_tables<Table>, Named> {
  using base = sharded_call<Exec, joined_tables<Table>, Named>;
  using base::call, base::exec, base::named, base::routes, base::table, base::verb;
  using typename base::wire;
  using bounds_policy = typename Bag::chosen::template get<bounds_category, bounds::check>;
  using path_policy = typename Bag::chosen::template get<path_category, path::automatic>;
  using element = typename Table::value_type;
  using space = typename Table::memory_space;
  using spread = typename Table::sharding_type;
  using plain = std::remove_const_t<typename Named::value_type>;
  using home = payload_space<Exec, space, typename Out::memory_space>;
  static constexpr bool tries =
      path_policy::chosen_at_run_time && reads_peers<Exec, joined_tables<Table>, typename Out::memory_space>;
  /// The bounds of the places of arrived rows: -1 is a position without a row.
  using arrived_bounds = std::conditional_t<
      std::is_same_v<bounds_policy, bounds::unchecked>, bounds::unchecked,
      std::conditional_t<bounds_policy::reports || std::is_same_v<bounds_policy, bounds::clamp>,
                         bounds::check, bounds::skip>>;

  const Bags& bags;
  const Out& out;
  const Extra& extra;
  bool by_peers = false;
  tensor<element, home> arrived{};

  sharded_tables_pool(const Exec& instance, joined_tables<Table>& tables, const Named& indices,
                      const Bags& offsets, const Out& sink, const Extra& weights, const call_note& note)
      : base("gather_bags", instance, tables, indices, false, note),
        bags(offsets),
        out(sink),
        extra(weights) {}

  void check() {
    require_rank_one(verb, named);
    require_joined(verb, call, table, out);
    require_bags(verb, bags, named.rows(), out, count());
    if constexpr (!std::is_same_v<Extra, no_array>) require_weights(verb, extra, named.rows());
    require_array_device(verb, exec, out);
    require_direct_reach(verb, exec, out);
    for (const Table* part : table.parts())
      for (int r = call.first(); r < call.last(); ++r)
        require_direct_reach(verb, this->instance(r), make_ref(part->shard(r)));
  }
  void route() {
    if (may_reach_shards(call, table)) {
      if constexpr (tries) by_peers = kernels_read(exec, named) && reaches_shards(exec, table);
      if constexpr (!spread::replicates)
        by_peers = agree_to_read(call, exec, this->instance(call.rank()), by_peers);
    }
    if (!by_peers) route_batch_of_tables();
  }
  void agree() {
    if (!by_peers && !call.is_whole() && !routes.batch.everywhere)
      routes = complete_routing(call, table.label(), std::move(routes.batch));
  }
  /// Other ranks do not learn of bad indices of this one.
  [[nodiscard]] bool refuse() const { return false; }
  void move() {
    if constexpr (tries)
      if (by_peers) {
        static const std::string label = "ferry::distributed::gathered";
        this->result = pool_of_peers();
        execution_backend<Exec>::fence(exec, label);
        call.agree();
        call.close();
        return;
      }
    arrived =
        this->template fetch<home, element>([this](const auto&, int rank, const auto& rows,
                                                   const auto& sink) { read_shards_of(rank, rows, sink); },
                                            table.widest());
    call.close();
  }
  void apply() {
    if (!by_peers) this->result = pool_arrived_rows();
  }

 private:
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(table.parts().size()); }
  [[nodiscard]] auto notes() const {
    auto list = std::make_shared<table_descriptions>();
    list->bags = out.rows();
    list->tables = table.part_notes();
    return list;
  }
  void route_batch_of_tables() {
    bool is_routed = false;
    if constexpr (routes_by_kernels<Exec> && finds_owners_in_kernels<joined_tables<Table>>)
      if (kernels_read(exec, named)) {
        launch_context<Exec> work(exec, verb);
        table.bring(work);
        routed_lists lists;
        const auto rows =
            route_tables<bounds_policy>(work, table, named, bags_near(work, bags), lists, routes.batch, out);
        bring_to_host(exec, lists, routes.batch);
        work.finish().drop();
        is_routed = true;
      }
    if (is_routed) return;
    const host_bags<Exec, Bags> list(exec, bags, out.rows() * count(), named.rows(), false);
    routes.batch = route_tables_on_host<bounds_policy>(exec, table, named, list.list(), out.rows());
  }
  /// Rows of the shards of a rank, which have numbers one table after the other.
  template <class Rows, class Sink>
  void read_shards_of(int rank, const Rows& rows, const Sink& sink) const {
    const auto elements = static_cast<std::int64_t>(sink.rows()) * table.widest();
    if (elements == 0) return;
    const Exec shard_exec = this->instance(rank);
    launch_context<Exec> work(shard_exec, verb);
    const std::string& label = work.label("tables", "read");
    std::vector<kernels::table_entry<element>> shards;
    for (const Table* part : table.parts()) {
      const auto shard = make_ref(part->shard(rank));
      work.reads_from(read_only(shard));
      shards.push_back({shard.data, shard.row_stride(), shard.rows(), shard.width(), 0});
    }
    const std::int64_t* const first_row =
        records_for_kernels(work, std::vector<std::int64_t>(table.first_local(rank)));
    launch(shard_exec, label, elements,
           kernels::read_shards<element>{{first_row, count()},
                                         records_for_kernels(work, std::move(shards)),
                                         indices_for_kernels(work, read_only(make_ref(rows))),
                                         make_ref(sink).data,
                                         fast_divisor(table.widest())});
    execution_backend<Exec>::fence(shard_exec, label);
    work.finish().drop();
  }
  /// Pools rows that kernels read in the shards of all ranks.
  [[nodiscard]] ticket pool_of_peers() const {
    using entry = kernels::shards_entry<element, spread>;
    using source = kernels::shard_index_rows<plain, bounds_policy, spread>;
    launch_context<Exec> work(exec, verb);
    const std::string& label = work.label("tables");
    if (out.rows() != 0) {
      std::vector<kernels::shard_places<spread>> places;
      std::vector<const element*> lowest;
      bool packed = true;
      for (const Table* part : table.parts()) {
        const auto shards = reach_shards(work, *part);
        packed = packed && shards.in_units_of(kernels::packed_tile::elements * sizeof(element));
        places.push_back(shards.source_in(sizeof(element), no_array{}).places);
        lowest.push_back(shards.lowest);
      }
      const auto* const near_places = records_for_kernels(work, std::move(places));
      std::vector<entry> entries;
      for (std::size_t t = 0; t < lowest.size(); ++t) {
        const Table& part = *table.parts()[t];
        entries.push_back({lowest[t], near_places + t, static_cast<std::int64_t>(part.rows()),
                           static_cast<std::int64_t>(part.width()), table.first_column()[t]});
      }
      work.writes_to(out);
      launch_pool_of_tables<Bag>(work, label, entries,
                                 source_of_tables<source>(work, named, table.lacks_rows()), bags,
                                 named.rows(), extra, packed, out);
    }
    work.name_tables(notes());
    return work.finish(read_only(whole_ref(*table.parts().front())), named.rows(), std::is_signed_v<plain>);
  }
  /// Pools the rows that have arrived. The errors are those of the user's indices.
  [[nodiscard]] ticket pool_arrived_rows() const {
    using entry = kernels::table_entry<element>;
    using source = kernels::bag_index_rows<std::int64_t, arrived_bounds>;
    if (out.rows() == 0) return {};
    const auto rows = make_ref(arrived);
    const auto slots = slots_of(routes.batch);
    std::vector<entry> entries;
    bool packed = in_units_of(kernels::packed_tile::elements * sizeof(element), rows);
    for (std::size_t t = 0; t < table.parts().size(); ++t) {
      const auto width = static_cast<std::int64_t>(table.parts()[t]->width());
      packed = packed && width % kernels::packed_tile::elements == 0;
      entries.push_back({rows.data, table.widest(), rows.rows(), width, table.first_column()[t]});
    }
    launch_context<Exec> work(exec, verb);
    const std::string& label = work.label("tables", "arrived");
    work.writes_to(out);
    const auto places = source_of_tables<source>(work, read_only(make_ref(slots)), false);
    launch_pool_of_tables<Bag>(work, label, entries, places, bags, named.rows(), extra, packed, out);
    execution_backend<Exec>::fence(exec, label);
    index_report report;
    constexpr bool checks = !std::is_same_v<bounds_policy, bounds::unchecked>;
    if constexpr (checks) report = read_report<Exec>(work.report());
    work.finish().drop();
    if (report.out_of_range == 0) return {};
    if (report.bad_bags == 0) {
      std::vector<plain> room;
      const plain* const values = host_values(exec, named, room);
      report.first_index =
          static_cast<std::uint64_t>(static_cast<std::int64_t>(values[report.first_position]));
    }
    return ticket_of_error(
        found_error(report, verb, *notes(), out.note(), named.rows(), std::is_signed_v<plain>));
  }
};

}  // namespace ferry::detail
