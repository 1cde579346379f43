// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/detail/copy_lists.hpp>
#include <ferry/distributed/sharded/detail/copy_ranges.hpp>
#include <ferry/distributed/sharded/detail/row_series.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::detail {

/// The shards = the rows of `source` that have their numbers.
template <class Exec, class Table, class Source>
struct copy_into_shards : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::table;
  using from_space = typename Source::memory_space;
  using to_space = typename Table::memory_space;

  const Exec& exec;
  const Source& source;
  std::vector<row_series> series{};

  copy_into_shards(const Exec& instance, const Source& array, Table& shards, const call_note& note)
      : base(shards, note), exec(instance), source(array) {}

  void check() {
    require_same_extents("copy", table, source);
    require_apart("copy", call, table, source);
    series = series_of(table);
  }
  void apply() {
    for (int r = call.first(); r < call.last(); ++r)
      if (table.rows_of(r) != 0) fill(r);
    call.agree();
  }

 private:
  void fill(int rank) {
    auto shard = make_ref(table.shard(rank));
    const Exec instance =
        is_of_devices<from_space> ? exec : shard_instance(table.comm(), rank, exec);  // the one with the link
    constexpr bool by_kernel = copies_by_kernel<Exec, from_space, to_space>;
    if (!series.empty() && copies_memory_of(instance, shard.device(), by_kernel)) {
      begin_on(instance, exec);
      copy(instance, rows_in_series(source, series[static_cast<std::size_t>(rank)]),
           rows_in_series(shard, {0, 1, shard.rows()}))
          .join();
      return;
    }
    if constexpr (by_kernel)
      if (!lies_elsewhere(instance, shard) && !lies_elsewhere(instance, source)) {
        begin_on(instance, exec);
        copy_numbered<path::direct>(instance, reached_rows(source), shard,
                                    kernels::numbered_rows{this->rows_of_shard(rank)}, shard.rows())
            .join();
        return;
      }
    fill_by_lists(rank);
  }
  void fill_by_lists(int rank) {
    const auto row_at = this->rows_of_shard(rank);
    const std::int64_t shard_rows = table.rows_of(rank);
    row_list<Exec> numbers("rows", std::min(copied_at_once, shard_rows));
    for (std::int64_t begin = 0; begin < shard_rows; begin += copied_at_once) {
      const std::int64_t count = std::min(copied_at_once, shard_rows - begin);
      for (std::int64_t i = 0; i < count; ++i) numbers.data()[i] = row_at(begin + i);
      auto part = table.shard(rank).rows_between(begin, begin + count);
      gather_across(exec, source, numbers.first(count), part);
    }
  }
};

}  // namespace ferry::detail
