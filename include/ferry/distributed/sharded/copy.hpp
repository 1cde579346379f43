// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
#include <ferry/distributed/sharded/gather.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>

namespace ferry {

namespace detail {

/// Rows that one part of a copy moves, so that its buffers stay small.
inline constexpr std::int64_t copied_at_once = 1 << 16;

/// Rows [begin, begin + count) of an array with dense rows.
template <class T, class Space>
array_ref<T, Space> part_of(array_ref<T, Space> array, std::int64_t begin, std::int64_t count) {
  array.data += begin * array.row_stride();
  array.extents[0] = count;
  return array;
}

template <class Table, class Array>
void require_same_extents(const char* verb, const Table& table, const Array& array) {
  require_dense_rows(verb, array);
  if (array.rows() != static_cast<std::int64_t>(table.rows()) ||
      array.width() != static_cast<std::int64_t>(table.width()))
    throw invalid_argument(std::string("ferry::") + verb + ": the extents of " + table.describe() + " and " +
                           array.describe() + " differ");
}

template <class Exec>
using row_list = tensor<std::int64_t, wire_space<Exec>>;

/// The shards = the rows of `source` that have their numbers.
template <class Exec, class Table, class Source>
struct copy_into_shards : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::table;

  const Exec& exec;
  const Source& source;

  copy_into_shards(const Exec& instance, const Source& array, Table& shards, const call_note& note)
      : base(shards, note), exec(instance), source(array) {}

  void check() { require_same_extents("copy", table, source); }
  void apply() {
    row_list<Exec> numbers("rows", copied_at_once);
    for (int r = call.first(); r < call.last(); ++r) fill(r, numbers);
    call.agree();
  }

 private:
  void fill(int rank, row_list<Exec>& numbers) {
    const auto row_at = this->rows_of_shard(rank);
    const std::int64_t shard_rows = table.rows_of(rank);
    for (std::int64_t begin = 0; begin < shard_rows; begin += copied_at_once) {
      const std::int64_t count = std::min(copied_at_once, shard_rows - begin);
      for (std::int64_t i = 0; i < count; ++i) numbers.data()[i] = row_at(begin + i);
      auto part = table.shard(rank).rows_between(begin, begin + count);
      gather_across(exec, source, numbers.first(count), part);
    }
  }
};

/// The ranks agree on a copy of all rows to an array of each; then it is made of gathers.
template <class Exec, class Table, class Sink>
struct copy_from_shards : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::rows, base::table;

  const char* verb;
  const Exec& exec;
  const Sink& sink;
  bool takes = true;  ///< this rank gets the rows
  row_list<Exec> numbers{};

  copy_from_shards(const char* name, const Exec& instance, Table& shards, const Sink& array,
                   const call_note& note)
      : base(shards, note), verb(name), exec(instance), sink(array) {}

  void check() {
    takes = call.is_whole() || sink.rows() != 0;
    if (takes) require_same_extents(verb, table, sink);
    numbers = row_list<Exec>("rows", std::min(copied_at_once, rows()));
  }
  void apply() const {}

  void gather_parts() {
    for (std::int64_t begin = 0; begin < rows(); begin += copied_at_once) {
      const std::int64_t count = std::min(copied_at_once, rows() - begin);
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
};

/// The ranks agree on a copy of a sharded table to another one; then the owners of the target gather.
template <class Exec, class Table, class Target>
struct copy_between_shards : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::table;
  using landing_type = tensor<typename Target::value_type, typename Target::memory_space>;

  const Exec& exec;
  Target& target;
  const call_note& note;
  int first = 0, last = 0;  ///< the ranks of the target that this thread acts for
  std::int64_t most = 0;    ///< rows of a shard: every rank takes part in the gathers of the largest one
  row_list<Exec> numbers{};
  landing_type landed{};  ///< for shards of other devices
  std::exception_ptr failure{};

  copy_between_shards(const Exec& instance, Table& source, Target& shards, const call_note& words)
      : base(source, words), exec(instance), target(shards), note(words) {}

  void check() {
    if (table.rows() != target.rows() || table.width() != target.width())
      throw invalid_argument("ferry::copy: the extents of " + table.describe() + " and " + target.describe() +
                             " differ");
    if (!(table.comm() == target.comm()) && !(call.is_whole() && target.comm().acting_rank() < 0))
      throw invalid_argument(
          "ferry::copy: " + table.describe() + " and " + target.describe() +
          " belong to different groups, and the calling thread does not act for both as a whole");
    const collective target_call(target.comm(), note);
    first = target_call.first();
    last = target_call.last();
    for (int r = 0; r < target.comm().size(); ++r) most = std::max(most, target.rows_of(r));
    const std::int64_t at_once = std::min(copied_at_once, most);
    numbers = row_list<Exec>("rows", at_once);
    for (int r = first; r < last; ++r)
      if (landed.rows() == 0 && lies_elsewhere(exec, make_ref(target.shard(r))))
        landed = landing_type("copied rows", memory_home(exec), at_once, target.width());
  }
  void apply() const {}

  void gather_shards() {
    for (int r = first; r < last; ++r) fill(r);
  }

 private:
  void fill(int rank) {
    const std::int64_t shard_rows = target.rows_of(rank);
    const auto row_at =
        target.sharding().global_rows(rank, static_cast<std::int64_t>(target.rows()), target.comm().size());
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

}  // namespace detail

/// A sharded table = an array of all its rows, in the order of the row numbers, with conversion if the
/// element types differ. Collective, see sharded_table: every rank passes an array with the same contents and
/// copies the rows that it owns. Blocks until all ranks have copied.
template <class Exec, class From, class T, class Space, class Spread>
  requires(detail::AnArray<From>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const From& array, sharded_table<T, Space, Spread>& table) {
  const auto source = detail::read_only(make_ref(array));
  detail::copy_into_shards<Exec, sharded_table<T, Space, Spread>, std::remove_const_t<decltype(source)>> verb(
      exec, source, table, detail::note_of<>("copy into the shards", table));
  return verb.call.run(verb);
}

/// An array of all rows = a sharded table, in the order of the row numbers, with conversion if the element
/// types differ. Collective, see sharded_table: every rank gets all rows in an array of its own; a rank that
/// passes an array without rows gets none. Blocks until the rows are there.
template <class Exec, class T, class Space, class Spread, class To>
  requires(detail::AnArray<To>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_table<T, Space, Spread>& table, To&& array) {
  detail::require_output<To>();
  const auto sink = make_ref(array);
  detail::copy_from_shards<Exec, const sharded_table<T, Space, Spread>, std::remove_const_t<decltype(sink)>>
      verb("copy", exec, table, sink, detail::note_of<>("copy", table));
  verb.call.run(verb).drop();
  verb.gather_parts();
  return {};
}

/// A sharded table = another one of the same extents, of any sharding, with conversion if the element
/// types differ. Collective, see sharded_table. If the two belong to different groups the calling thread
/// must act for both groups as a whole. Blocks until all rows are there.
template <class Exec, class T, class Space, class Spread, class U, class ToSpace, class ToSpread>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_table<T, Space, Spread>& source,
    sharded_table<U, ToSpace, ToSpread>& target) {
  using source_type = const sharded_table<T, Space, Spread>;
  auto note = detail::note_of<>("copy", source);
  note.add(" to ").add_number(target.number());
  detail::copy_between_shards<Exec, source_type, sharded_table<U, ToSpace, ToSpread>> verb(exec, source,
                                                                                           target, note);
  verb.call.run(verb).drop();
  verb.gather_shards();
  auto end_note = detail::note_of<>("end of a copy", source);
  detail::end_of_copy<source_type> end(source, verb.failure,
                                       end_note.add(" to ").add_number(target.number()));
  return end.call.run(end);
}

}  // namespace ferry
