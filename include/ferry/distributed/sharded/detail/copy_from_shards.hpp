// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/detail/copy_lists.hpp>
#include <ferry/distributed/sharded/detail/copy_ranges.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/row_series.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/gather.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// `sink` = all rows of a table, by gathers of their numbers; a rank that takes none has no positions there.
/// The ranks have agreed. `numbers` has room for the rows of one gather.
template <class Exec, class Table, class Sink>
void gather_all_rows(const Exec& exec, const Table& table, const Sink& sink, bool takes,
                     row_list<Exec>& numbers) {
  const auto rows = static_cast<std::int64_t>(table.rows());
  for (std::int64_t begin = 0; begin < rows; begin += copied_at_once) {
    const std::int64_t count = std::min(copied_at_once, rows - begin);
    for (std::int64_t i = 0; i < count; ++i) numbers.data()[i] = begin + i;
    auto part = takes ? part_of(sink, begin, count) : sink;
    if (!takes) {  // no rows, of the table's width
      part.rank = 2;
      part.extents[1] = static_cast<std::int64_t>(table.width());
      part.make_dense();
    }
    gather(exec, table, numbers.first(takes ? count : 0), part, bounds::unchecked{}).join();
  }
}

/// A copy of all rows to an array of each rank. By lists it is made of gathers after the ranks have agreed.
template <class Exec, class Table, class Sink>
struct copy_from_shards : reads_whole_shards<Exec, Table> {
  using base = reads_whole_shards<Exec, Table>;
  using base::call, base::exec, base::has_lists, base::rows, base::series, base::table;
  using to_space = typename Sink::memory_space;

  const Sink& sink;
  bool takes = true;  ///< this rank gets the rows
  copy_way way = copy_way::ranges;
  row_list<Exec> numbers{};

  copy_from_shards(const Exec& instance, Table& shards, const Sink& array, const call_note& note)
      : base(shards, instance, note), sink(array) {}

  void check() {
    takes = call.is_whole() || sink.rows() != 0;
    series = series_of(table);
    if (!takes) return;
    require_same_extents("copy", table, sink);
    require_apart("copy", call, table, sink);
    require_array_device("copy", exec, sink);
    way = way_of_rows();
  }
  void agree() {
    this->offer_shards(way != copy_way::lists);
    if (!has_lists) return;
    numbers = row_list<Exec>("rows", std::min(copied_at_once, rows()));
    call.agree();
  }
  void apply() const {}

  /// After the phases of the call.
  void gather_parts() { gather_all_rows(exec, table, sink, takes, numbers); }
  void move() {
    if (has_lists) return;
    if (takes && way == copy_way::kernel)
      read_at_once();
    else if (takes && way == copy_way::buffer)
      read_by_buffer();
    else if (takes)
      this->for_each_source([&](int rank) { way == copy_way::ranges ? read_range(rank) : read_rows(rank); });
    call.agree();
  }

 private:
  static constexpr bool by_kernel = copies_by_kernel<Exec, typename Table::memory_space, to_space>;

  static constexpr bool by_buffer = passes_host_threads<Exec, to_space> &&
                                    is_of_devices<typename Table::memory_space> &&
                                    finds_rows_to_copy<Exec, Table, device_space>;

  [[nodiscard]] copy_way way_of_rows() const {
    if constexpr (by_buffer)
      if (!are_ranges(series) && reaches_shards(exec, table)) return copy_way::buffer;
    if (series.empty() && by_kernel)  // each number is computed once
      return this->template reaches_sources<to_space>(exec) ? copy_way::kernels : copy_way::lists;
    return this->template way_to<to_space>(exec);
  }
  void read_at_once() {
    if constexpr (finds_rows_to_copy<Exec, Table, to_space>) {
      copy_numbered<path::peer>(exec, peer_rows(table), sink, kernels::identity{}, rows()).join();
    }
  }
  void read_by_buffer() {
    if constexpr (by_buffer) {
      using element = typename Table::value_type;
      const auto whole = whole_ref(table);
      const std::int64_t at_once = rows_of_buffer<element>(rows(), whole.width());
      auto buffer = payload<element, device_space>(exec, "rows of all shards", at_once, whole.width());
      for (std::int64_t begin = 0; begin < rows(); begin += at_once) {
        const std::int64_t count = std::min(at_once, rows() - begin);
        auto part = buffer.first(static_cast<std::size_t>(count));
        copy_numbered<path::peer>(exec, peer_rows(table), make_ref(part), kernels::rows_from{begin}, count)
            .drop();
        auto target = part_of(sink, begin, count);
        copy(exec, part, target).join();
      }
    }
  }
  void read_rows([[maybe_unused]] int rank) {
    if constexpr (by_kernel) {
      const Exec instance = this->template instance_for<to_space>(rank, exec);
      begin_on(instance, exec);
      const auto shard = this->source_of(rank);
      copy_numbered<path::direct>(instance, reached_rows(shard), sink,
                                  kernels::numbered_places{this->rows_of_shard(rank)}, shard.rows())
          .join();
    }
  }
  void read_range(int rank) {
    const row_series& shard_rows = series[static_cast<std::size_t>(rank)];
    if (shard_rows.count == 0 || sink.width() == 0) return;
    const Exec instance = this->template instance_for<to_space>(rank, exec);
    begin_on(instance, exec);
    auto part = rows_in_series(sink, shard_rows);
    copy(instance, this->source_of(rank), part).join();
  }
};

}  // namespace ferry::detail
