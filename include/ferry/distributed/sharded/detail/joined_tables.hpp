// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/each_table.hpp>
#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/concepts/sharding.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry::kernels {

/// The owners of the rows of several sharded tables, which have numbers one table after the other. In each
/// shard they have numbers likewise.
template <class Spread>
struct joined_sharding {
  static constexpr bool replicates = Spread::replicates;
  static constexpr bool in_kernels = true;

  table_ranges tables{};
  const ferry::detail::kernel_sharding<Spread>* spreads = nullptr;  ///< of each table
  const std::int64_t* first_local = nullptr;  ///< [rank * tables + table] the table's first row in a shard

  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t, int ranks) const {
    const std::int64_t table = tables.table_of(row);
    return owner_in(table, row, ranks);
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int ranks) const {
    const std::int64_t table = tables.table_of(row);
    return first_local[owner_in(table, row, ranks) * tables.tables + table] +
           spreads[table].local_row(row - tables.first_row[table], rows_of(table), ranks);
  }

 private:
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t rows_of(std::int64_t table) const {
    return tables.first_row[table + 1] - tables.first_row[table];
  }
  [[nodiscard]] KOKKOS_FUNCTION int owner_in(std::int64_t table, std::int64_t row, int ranks) const {
    return spreads[table].owner(row - tables.first_row[table], rows_of(table), ranks);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Several sharded tables as one, for routes: it has the rows of all, one table after the other. A rank's
/// shard of it has the rows of that rank's shards.
template <class Table>
class joined_tables {
 public:
  using value_type = typename Table::value_type;
  using memory_space = typename Table::memory_space;
  using spread_type = typename Table::sharding_type;
  using sharding_type = kernels::joined_sharding<spread_type>;
  using part_type = Table;

  /// `tables` outlives the object. Throws invalid_argument if there are none.
  joined_tables(const char* verb, const std::vector<Table*>& tables) : parts_(tables) {
    if (tables.empty()) throw invalid_argument(joined("ferry::", verb, ": for_each_table has no tables"));
    for (const Table* table : tables) {
      first_row_.push_back(first_row_.back() + static_cast<std::int64_t>(table->rows()));
      first_column_.push_back(first_column_.back() + static_cast<std::int64_t>(table->width()));
      widest_ = std::max(widest_, static_cast<std::int64_t>(table->width()));
      lacks_rows_ = lacks_rows_ || table->rows() == 0;
    }
    for (int r = 0; r < comm().size(); ++r) {
      std::vector<std::int64_t> first{0};
      for (const Table* table : tables)  // require_joined refuses those of other groups
        first.push_back(first.back() + (table->comm() == comm() ? table->rows_of(r) : 0));
      first_local_.push_back(std::move(first));
    }
  }

  [[nodiscard]] const std::vector<Table*>& parts() const { return parts_; }
  [[nodiscard]] const communicator& comm() const { return parts_.front()->comm(); }
  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(first_row_.back()); }
  /// The width of the rows of all tables side by side.
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(first_column_.back()); }
  [[nodiscard]] std::int64_t widest() const { return widest_; }
  [[nodiscard]] bool lacks_rows() const { return lacks_rows_; }  ///< true if a table does
  [[nodiscard]] const std::string& label() const { return parts_.front()->label(); }
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const {
    return parts_.front()->shared_label();
  }
  /// The first row and the first column of each table, and the end.
  /// @{
  [[nodiscard]] const std::vector<std::int64_t>& first_row() const { return first_row_; }
  [[nodiscard]] const std::vector<std::int64_t>& first_column() const { return first_column_; }
  /// @}
  /// The first row of each table in the shard of a rank, and the end.
  [[nodiscard]] const std::vector<std::int64_t>& first_local(int rank) const {
    return first_local_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::int64_t rows_of(int rank) const { return first_local(rank).back(); }
  /// True if the object of each table holds the shard of a rank.
  [[nodiscard]] bool holds(int rank) const {
    return std::all_of(parts_.begin(), parts_.end(), [=](const Table* table) { return table->holds(rank); });
  }

  /// As those of a sharded table.
  /// @{
  [[nodiscard]] int owner(std::int64_t row) const {
    const std::size_t table = table_of(row);
    return parts_[table]->owner(row - first_row_[table]);
  }
  [[nodiscard]] std::int64_t local_row(std::int64_t row) const {
    const std::size_t table = table_of(row);
    const std::int64_t table_row = row - first_row_[table];
    return first_local(parts_[table]->owner(table_row))[table] + parts_[table]->local_row(table_row);
  }
  /// For kernels, after bring().
  [[nodiscard]] const sharding_type& sharding() const { return sharding_; }
  /// @}

  /// Brings the numbers to where kernels of the call read them, as long as it lasts.
  template <class Exec>
  void bring(launch_context<Exec>& call) {
    const auto count = static_cast<std::int64_t>(parts_.size());
    std::vector<std::int64_t> numbers = first_row_;
    numbers.insert(numbers.end(), first_column_.begin(), first_column_.end());
    for (const auto& first : first_local_) numbers.insert(numbers.end(), first.begin(), first.end() - 1);
    const std::int64_t* const records = records_for_kernels(call, std::move(numbers));
    sharding_.tables = {records, count};
    near_columns_ = records + count + 1;
    sharding_.first_local = near_columns_ + count + 1;
    std::vector<kernel_sharding<spread_type>> spreads;
    for (const Table* table : parts_) spreads.push_back(sharding_for_kernels(call.exec(), *table));
    sharding_.spreads = records_for_kernels(call, std::move(spreads));
  }
  /// The first columns for kernels, after bring().
  [[nodiscard]] const std::int64_t* near_columns() const { return near_columns_; }

  [[nodiscard]] std::vector<array_note> part_notes() const {
    std::vector<array_note> notes;
    for (const Table* table : parts_) notes.push_back(whole_ref(*table).note());
    return notes;
  }

 private:
  /// The last of the tables that begin at the row or before it.
  [[nodiscard]] std::size_t table_of(std::int64_t row) const {
    return static_cast<std::size_t>(std::upper_bound(first_row_.begin(), first_row_.end() - 1, row) -
                                    first_row_.begin() - 1);
  }

  const std::vector<Table*>& parts_;
  std::vector<std::int64_t> first_row_{0}, first_column_{0};
  std::vector<std::vector<std::int64_t>> first_local_;
  std::int64_t widest_ = 0;
  bool lacks_rows_ = false;
  sharding_type sharding_{};
  const std::int64_t* near_columns_ = nullptr;
};

template <class Table>
struct sharded_kind<joined_tables<Table>> : sharded_kind<std::remove_const_t<Table>> {
  template <class Use>
  static void for_each_part(const joined_tables<Table>& tables, const Use& use) {
    for (const auto* table : tables.parts()) use(*table);
  }
};

/// Checks the tables of a verb, which are of one group, and whose parts lie side by side in the rows of the
/// batch.
template <class Table, class Batch>
void require_joined(const char* verb, const collective& call, const joined_tables<Table>& tables,
                    const Batch& batch) {
  std::vector<array_ref<typename Table::value_type, typename Table::memory_space>> wholes;
  for (const Table* table : tables.parts()) {
    if (!(table->comm() == tables.comm()))
      throw invalid_argument(joined("ferry::", verb, ": ", tables.parts().front()->describe(), " and ",
                                    table->describe(), " of for_each_table belong to different groups"));
    wholes.push_back(whole_ref(*table));
  }
  static_cast<void>(columns_of_tables(verb, std::vector<untyped_array>(wholes.begin(), wholes.end()), batch));
  for (const Table* table : tables.parts()) require_apart(verb, call, *table, batch);
}

/// Appends numbers to a note, series of them in short: " 4, 7 to 11 by 2".
void add_numbers(call_note& note, const std::vector<std::uint64_t>& numbers);

/// "<verb> of <n> tables, numbers <...>", and the types that must agree.
template <class... Agreed, class Table>
call_note note_of_tables(const char* verb, const std::vector<Table*>& tables) {
  call_note note(verb);
  note.add(" of").add_number(tables.size()).add(" tables, numbers");
  std::vector<std::uint64_t> numbers;
  for (const Table* table : tables) numbers.push_back(table->number());
  add_numbers(note, numbers);
  (note.add_hidden(note_part::types, typeid(Agreed).hash_code()), ...);
  return note;
}

}  // namespace ferry::detail

/// Buckets of bags of several sharded tables. The bag of a position says of which table its row is.
namespace ferry::detail {

/// The row of each position among those of all tables, -1 for none, where kernels reach it.
struct joined_rows {
  std::shared_ptr<void> memory, passing;
  const std::int64_t* data = nullptr;
};

/// Puts a batch into buckets, as bucket_rows does for one table. `bags` for kernels of the call, whose tables
/// have been brought there; each table has as many bags as `batch` has rows. Waits.
template <class Bounds, class Exec, class Table, class Index, class Space, class Bags, class Batch>
joined_rows bucket_tables(launch_context<Exec>& call, const joined_tables<Table>& tables,
                          const array_ref<Index, Space>& indices, const Bags& bags, buckets& items,
                          const Batch& batch) {
  using plain = std::remove_const_t<Index>;
  constexpr bool clamps = std::is_same_v<Bounds, bounds::clamp>;
  const Exec& exec = call.exec();
  const std::int64_t count = indices.rows();
  const kernels::table_ranges ranges = tables.sharding().tables;
  joined_rows rows;
  rows.memory = engine::get(exec)->device_scratch(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) *
                                                  sizeof(std::int64_t));
  auto* const row_of = static_cast<std::int64_t*>(rows.memory.get());
  rows.data = row_of;
  const bool reports = Bounds::reports || (clamps && tables.lacks_rows());
  const report_writer report = reports ? call.report() : report_writer{};
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = bags.data;
  if (count > 0)
    launch(exec, call.label("tables", "resolve"), count,
           kernels::resolve_in_tables<plain, Bounds, offset_type<Bags>, clamps>{
               {indices_for_kernels(call, indices_near(exec, indices, rows.passing)), 0, report},
               report,
               list_of_bags(bags, offsets, batch.rows() * ranges.tables, count, false, report),
               fast_divisor(batch.rows()),
               ranges,
               row_of});
  items = bucket_rows<bounds::skip>(call.verb(), exec, tables, list_view<Exec>(row_of, count), batch);
  if (reports) items.report = read_report<Exec>(report);
  items.signed_indices = std::is_signed_v<plain>;
  return rows;
}

}  // namespace ferry::detail
