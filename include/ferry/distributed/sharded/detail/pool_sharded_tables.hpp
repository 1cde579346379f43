// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/each_table.hpp>
#include <ferry/bags/detail/gather_tables.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
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

/// The pooling of bags of several sharded tables: by one kernel that reads the shards of all ranks, or of
/// rows that their owners send. `Extra`: no_array, or the weights.
template <class Bag, class Exec, class Table, class Named, class Bags, class Out, class Extra>
class tables_pooling {
 public:
  using bounds_policy = typename Bag::chosen::template get<bounds_category, bounds::check>;
  using element = typename Table::value_type;
  using spread = kernel_sharding<typename Table::sharding_type>;
  using plain = std::remove_const_t<typename Named::value_type>;
  /// The bounds of the slots of arrived rows: -1 is a position without a row.
  using arrived_bounds = std::conditional_t<
      std::is_same_v<bounds_policy, bounds::unchecked>, bounds::unchecked,
      std::conditional_t<bounds_policy::reports || std::is_same_v<bounds_policy, bounds::clamp>,
                         bounds::check, bounds::skip>>;

  tables_pooling(const Exec& exec, joined_tables<Table>& tables, const Named& named, const Bags& bags,
                 const Out& out, const Extra& extra)
      : exec_(exec), tables_(tables), named_(named), bags_(bags), out_(out), extra_(extra) {}

  void check(const collective& call) const {
    require_rank_one(verb_, named_);
    require_joined(verb_, call, tables_, out_);
    require_bags(verb_, bags_, named_.rows(), out_, count());
    if constexpr (!std::is_same_v<Extra, no_array>) require_weights(verb_, extra_, named_.rows());
    require_array_device(verb_, exec_, out_);
    require_direct_reach(verb_, exec_, out_);
    for (const Table* part : tables_.parts())
      for (int r = call.first(); r < call.last(); ++r)
        require_direct_reach(verb_, shard_instance(tables_.comm(), r, exec_), make_ref(part->shard(r)));
  }

  /// The buckets of the batch, whose rows are those of all tables.
  [[nodiscard]] buckets bucket() const {
    buckets items;
    launch_context<Exec> work(exec_, verb_);
    tables_.bring(work);
    static_cast<void>(
        bucket_tables<bounds_policy>(work, tables_, named_, bags_near(work, bags_), items, out_));
    work.finish().drop();
    return items;
  }

  /// Rows of the shards of a rank, which have numbers one table after the other.
  template <class Rows, class Sink>
  void read_shards(const Exec& shard_exec, int rank, const Rows& rows, Sink& sink) const {
    const auto elements = static_cast<std::int64_t>(sink.rows()) * tables_.widest();
    if (elements == 0) return;
    launch_context<Exec> work(shard_exec, verb_);
    const std::string& label = work.label("tables", "read");
    std::vector<kernels::table_entry<element>> shards;
    for (const Table* part : tables_.parts()) {
      const auto shard = make_ref(part->shard(rank));
      work.reads_from(read_only(shard));
      shards.push_back({shard.data, shard.row_stride(), shard.rows(), shard.width(), 0});
    }
    const std::int64_t* const first_row =
        records_for_kernels(work, std::vector<std::int64_t>(tables_.first_local(rank)));
    launch(shard_exec, label, elements,
           kernels::read_shards<element>{{first_row, count()},
                                         records_for_kernels(work, std::move(shards)),
                                         indices_for_kernels(work, rows),
                                         make_ref(sink).data,
                                         fast_divisor(tables_.widest())});
    execution_backend<Exec>::fence(shard_exec, label);
    work.finish().drop();
  }
  /// Pools rows that kernels read in the shards of all ranks.
  [[nodiscard]] ticket pool_in_place() const {
    using entry = kernels::shards_entry<element, spread>;
    using source = kernels::shard_index_rows<plain, bounds_policy, spread>;
    launch_context<Exec> work(exec_, verb_);
    const std::string& label = work.label("tables");
    if (out_.rows() != 0) {
      std::vector<kernels::shard_places<spread>> places;
      std::vector<const element*> lowest;
      bool packed = true;
      for (const Table* part : tables_.parts()) {
        const auto shards = reach_shards(work, *part);
        packed = packed && shards.in_units_of(kernels::packed_tile::elements * sizeof(element));
        places.push_back(shards.source_in(sizeof(element), no_array{}).places);
        lowest.push_back(shards.lowest);
      }
      const auto* const near_places = records_for_kernels(work, std::move(places));
      std::vector<entry> entries;
      for (std::size_t t = 0; t < lowest.size(); ++t) {
        const Table& part = *tables_.parts()[t];
        entries.push_back({lowest[t], near_places + t, static_cast<std::int64_t>(part.rows()),
                           static_cast<std::int64_t>(part.width()), tables_.first_column()[t]});
      }
      work.writes_to(out_);
      launch_pool_of_tables<Bag>(work, label, entries,
                                 source_of_tables<source>(work, named_, tables_.lacks_rows()), bags_,
                                 named_.rows(), extra_, packed, out_);
    }
    work.name_tables(notes());
    static const std::string waits = "ferry::distributed::gathered";
    ticket pooled =
        work.finish(read_only(whole_ref(*tables_.parts().front())), named_.rows(), std::is_signed_v<plain>);
    execution_backend<Exec>::fence(exec_, waits);
    return pooled;
  }
  /// Pools the rows that have arrived. The errors are those of the user's indices.
  template <class Arrived, class Slots>
  [[nodiscard]] ticket pool_arrived(const Arrived& arrived, const Slots& slots) const {
    using entry = kernels::table_entry<element>;
    using source = kernels::bag_index_rows<std::int64_t, arrived_bounds>;
    if (out_.rows() == 0) return {};
    const auto rows = make_ref(arrived);
    std::vector<entry> entries;
    bool packed = in_units_of(kernels::packed_tile::elements * sizeof(element), rows);
    for (std::size_t t = 0; t < tables_.parts().size(); ++t) {
      const auto width = static_cast<std::int64_t>(tables_.parts()[t]->width());
      packed = packed && width % kernels::packed_tile::elements == 0;
      entries.push_back({rows.data, tables_.widest(), rows.rows(), width, tables_.first_column()[t]});
    }
    launch_context<Exec> work(exec_, verb_);
    const std::string& label = work.label("tables", "arrived");
    work.writes_to(out_);
    const auto places = source_of_tables<source>(work, list_view<Exec>(slots), false);
    launch_pool_of_tables<Bag>(work, label, entries, places, bags_, named_.rows(), extra_, packed, out_);
    execution_backend<Exec>::fence(exec_, label);
    index_report report;
    constexpr bool checks = !std::is_same_v<bounds_policy, bounds::unchecked>;
    if constexpr (checks) report = read_report<Exec>(work.report());
    work.finish().drop();
    if (report.out_of_range == 0) return {};
    if (report.bad_bags == 0) {
      std::vector<plain> room;
      const plain* const values = host_values(exec_, named_, room);
      report.first_index =
          static_cast<std::uint64_t>(static_cast<std::int64_t>(values[report.first_position]));
    }
    return ticket_of_error(
        found_error(report, verb_, *notes(), out_.note(), named_.rows(), std::is_signed_v<plain>));
  }

 private:
  static constexpr const char* verb_ = "gather_bags";
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(tables_.parts().size()); }
  [[nodiscard]] auto notes() const {
    auto list = std::make_shared<table_descriptions>();
    list->bags = out_.rows();
    list->tables = tables_.part_notes();
    return list;
  }

  const Exec& exec_;
  joined_tables<Table>& tables_;
  const Named& named_;
  const Bags& bags_;
  const Out& out_;
  const Extra& extra_;
};

}  // namespace ferry::detail
