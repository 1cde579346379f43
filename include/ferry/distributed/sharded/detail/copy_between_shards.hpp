// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/copy_lists.hpp>
#include <ferry/distributed/sharded/detail/copy_ranges.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/row_series.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
#include <ferry/distributed/sharded/gather.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

namespace ferry::detail {

/// A copy of a sharded table to another one, whose owners read. By lists they gather after the ranks have
/// agreed.
template <class Exec, class Table, class Target>
struct copy_between_shards : reads_whole_shards<Exec, Table> {
  using base = reads_whole_shards<Exec, Table>;
  using base::call, base::exec, base::has_lists, base::series, base::table;
  using to_space = typename Target::memory_space;
  using landing_type = tensor<typename Target::value_type, to_space>;

  Target& target;
  const call_note& note;
  int first = 0, last = 0;  ///< the ranks of the target that this thread acts for
  std::vector<row_series> target_series{};
  std::vector<copy_way> ways{};
  std::int64_t most = 0;  ///< rows of a shard: every rank takes part in the gathers of the largest one
  row_list<Exec> numbers{};
  landing_type landed{};  ///< for shards of other devices
  std::exception_ptr failure{};

  copy_between_shards(const Exec& instance, Table& source, Target& shards, const call_note& words)
      : base(source, instance, words), target(shards), note(words) {}

  void check() {
    if (table.rows() != target.rows() || table.width() != target.width())
      throw invalid_argument(
          joined("ferry::copy: the extents of ", table.describe(), " and ", target.describe(), " differ"));
    if (!(table.comm() == target.comm()) && !(call.is_whole() && target.comm().acting_rank() < 0))
      throw invalid_argument(
          joined("ferry::copy: ", table.describe(), " and ", target.describe(),
                 " belong to different groups, and the calling thread does not act for both as a whole"));
    const collective target_call(target.comm(), note);
    first = target_call.first();
    last = target_call.last();
    series = series_of(table);
    target_series = series_of(target);
    for (int r = first; r < last; ++r) {
      require_apart("copy", call, table, make_ref(target.shard(r)));
      ways.push_back(way_of(r));
    }
  }
  void agree() {
    this->offer_shards(std::find(ways.begin(), ways.end(), copy_way::lists) == ways.end());
    if (!has_lists) return;
    for (int r = 0; r < target.comm().size(); ++r) most = std::max(most, target.rows_of(r));
    const std::int64_t at_once = std::min(copied_at_once, most);
    numbers = row_list<Exec>("rows", at_once);
    for (int r = first; r < last; ++r)
      if (landed.rows() == 0 && lies_elsewhere(exec, make_ref(target.shard(r))))
        landed = landing_type("copied rows", memory_home(exec), at_once, target.width());
    call.agree();
  }
  void move() {
    if (has_lists) return;
    for (int r = first; r < last; ++r) {
      if (target.rows_of(r) == 0 || target.width() == 0) continue;
      if (ways[static_cast<std::size_t>(r - first)] == copy_way::kernel)
        read_at_once(r);
      else
        this->for_each_source([&](int rank) { read_range(rank, r); });
    }
    call.agree();
  }
  void apply() const {}

  /// After the phases of the call.
  void gather_shards() {
    for (int r = first; r < last; ++r) fill(r);
  }

 private:
  [[nodiscard]] Exec instance_of(int rank) const { return shard_instance(target.comm(), rank, exec); }
  [[nodiscard]] auto numbers_of(int rank) const {
    return target.sharding().global_rows(rank, static_cast<std::int64_t>(target.rows()),
                                         target.comm().size());
  }
  [[nodiscard]] copy_way way_of(int rank) const {
    const Exec instance = instance_of(rank);
    if (lies_elsewhere(instance, make_ref(target.shard(rank)))) return copy_way::lists;
    return this->template way_to<to_space>(instance, !target_series.empty());
  }
  void read_at_once(int rank) {
    if constexpr (finds_rows_to_copy<Exec, Table, to_space>) {
      const Exec instance = instance_of(rank);
      begin_on(instance, exec);
      copy_numbered<path::peer>(instance, peer_rows(table), make_ref(target.shard(rank)),
                                kernels::numbered_rows{numbers_of(rank)}, target.rows_of(rank))
          .join();
    }
  }
  void read_range(int source_rank, int rank) {
    const row_series& shard_rows = series[static_cast<std::size_t>(source_rank)];
    const row_series& own_rows = target_series[static_cast<std::size_t>(rank)];
    const row_series common = common_rows(shard_rows, own_rows);
    if (common.count == 0) return;
    const Exec instance = this->template instance_for<to_space>(source_rank, instance_of(rank));
    begin_on(instance, exec);
    auto part = rows_in_series(make_ref(target.shard(rank)), own_rows.places_of(common));
    copy(instance, rows_in_series(this->source_of(source_rank), shard_rows.places_of(common)), part).join();
  }
  void fill(int rank) {
    const std::int64_t shard_rows = target.rows_of(rank);
    const auto row_at = numbers_of(rank);
    for (std::int64_t begin = 0; begin < most; begin += copied_at_once) {
      const std::int64_t first_row = std::min(begin, shard_rows);
      const std::int64_t count = std::min(copied_at_once, shard_rows - first_row);
      for (std::int64_t i = 0; i < count; ++i) numbers.data()[i] = row_at(first_row + i);
      auto part = target.shard(rank).rows_between(first_row, first_row + count);
      if (lies_elsewhere(exec, make_ref(part)))
        fetch(numbers.first(count), part);
      else
        gather(exec, table, numbers.first(count), part, bounds::unchecked{}).join();
    }
  }
  template <class Rows, class Part>
  void fetch(const Rows& row_numbers, Part& part) {
    auto arrived = landed.first(row_numbers.rows());
    gather(exec, table, row_numbers, arrived, bounds::unchecked{}).join();
    try {
      if (failure == nullptr) copy(exec, arrived, part).join();
    } catch (...) {  // the others count on this rank in the gathers that follow
      failure = std::current_exception();
    }
  }
};

/// All ranks leave a copy together: one that has left may read the shards of the others by path::peer.
template <class Table>
struct end_of_copy : verb_on_shards<Table> {
  const std::exception_ptr& failure;

  end_of_copy(Table& shards, const std::exception_ptr& error, const call_note& note)
      : verb_on_shards<Table>(shards, note), failure(error) {}

  void check() const {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  void apply() const {}
};

}  // namespace ferry::detail
