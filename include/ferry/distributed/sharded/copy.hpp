// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
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
void require_same_extents(const Table& table, const Array& array) {
  require_dense_rows("copy", array);
  if (array.rows() != static_cast<std::int64_t>(table.rows()) ||
      array.width() != static_cast<std::int64_t>(table.width()))
    throw invalid_argument("ferry::copy: the extents of " + table.describe() + " and " + array.describe() +
                           " differ");
}

template <class Exec>
tensor<std::int64_t, wire_space<Exec>> row_list(std::int64_t count) {
  return tensor<std::int64_t, wire_space<Exec>>("rows", count);
}

}  // namespace detail

/// A sharded table = an array of all its rows, in the order of the row numbers, with conversion if the
/// element types differ. Collective, see sharded_table: every rank passes an array with the same contents and
/// copies the rows that it owns. Blocks until all ranks have copied.
template <class Exec, class From, class T, class Space, class Spread>
  requires(detail::AnArray<From>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const From& array, sharded_table<T, Space, Spread>& table) {
  const auto source = detail::read_only(make_ref(array));
  detail::collective call(table.comm(), detail::note_of<>("copy into the shards", table));
  return call.guarded([&] {
    detail::require_same_extents(table, source);
    call.agree();
    auto rows = detail::row_list<Exec>(detail::copied_at_once);
    for (int r = call.first(); r < call.last(); ++r) {
      const auto row_at =
          table.sharding().global_rows(r, static_cast<std::int64_t>(table.rows()), call.ranks());
      const std::int64_t rows_here = table.rows_of(r);
      for (std::int64_t begin = 0; begin < rows_here; begin += detail::copied_at_once) {
        const std::int64_t count = std::min(detail::copied_at_once, rows_here - begin);
        for (std::int64_t i = 0; i < count; ++i) rows.data()[i] = row_at(begin + i);
        auto shard = table.shard(r).rows_between(begin, begin + count);
        detail::gather_across(exec, source, rows.first(count), shard);
      }
    }
    call.agree();
    call.close();
    return ticket();
  });
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
  const auto row_count = static_cast<std::int64_t>(table.rows());
  bool takes = true;
  decltype(detail::row_list<Exec>(0)) rows;
  {
    detail::collective call(table.comm(), detail::note_of<>("copy", table));
    call.guarded([&] {
      takes = call.is_whole() || sink.rows() != 0;
      if (takes) detail::require_same_extents(table, sink);
      rows = detail::row_list<Exec>(std::min(detail::copied_at_once, row_count));
      call.agree();
      call.close();
    });
  }
  for (std::int64_t begin = 0; begin < row_count; begin += detail::copied_at_once) {
    const std::int64_t count = std::min(detail::copied_at_once, row_count - begin);
    for (std::int64_t i = 0; i < count; ++i) rows.data()[i] = begin + i;
    const std::int64_t part_rows = takes ? count : 0;
    auto part = takes ? detail::part_of(sink, begin, count) : sink;
    if (!takes) {  // no rows, of the table's width
      part.rank = 2;
      part.extents[1] = static_cast<std::int64_t>(table.width());
      part.make_dense();
    }
    gather(exec, table, rows.first(part_rows), part, bounds::unchecked{}).join();
  }
  return {};
}

/// A sharded table = another one of the same extents, of any sharding, with conversion if the element
/// types differ. Collective, see sharded_table. If the two belong to different groups the calling thread
/// must act for both groups as a whole. Blocks until all rows are there.
template <class Exec, class T, class Space, class Spread, class U, class ToSpace, class ToSpread>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_table<T, Space, Spread>& source,
    sharded_table<U, ToSpace, ToSpread>& target) {
  int first = 0, last = 0;
  std::int64_t most = 0;  // every rank takes part as often as the rank with most rows
  for (int r = 0; r < target.comm().size(); ++r) most = std::max(most, target.rows_of(r));
  const std::int64_t at_once = std::min(detail::copied_at_once, most);
  decltype(detail::row_list<Exec>(0)) rows;
  tensor<U, ToSpace> landed;  // for shards on another device than the instance
  {
    auto note = detail::note_of<>("copy", source);
    detail::collective call(source.comm(), note.add(" to ").add_number(target.number()));
    call.guarded([&] {
      if (source.rows() != target.rows() || source.width() != target.width())
        throw invalid_argument("ferry::copy: the extents of " + source.describe() + " and " +
                               target.describe() + " differ");
      if (!(source.comm() == target.comm()) && !(call.is_whole() && target.comm().acting_rank() < 0))
        throw invalid_argument(
            "ferry::copy: " + source.describe() + " and " + target.describe() +
            " belong to different groups, and the calling thread does not act for both as a whole");
      const detail::collective target_call(target.comm(), note);
      first = target_call.first();
      last = target_call.last();
      rows = detail::row_list<Exec>(at_once);
      for (int r = first; r < last; ++r)
        if (landed.rows() == 0 && detail::lies_elsewhere(exec, make_ref(target.shard(r))))
          landed = tensor<U, ToSpace>("copied rows", detail::memory_home(exec), at_once, target.width());
      call.agree();
      call.close();
    });
  }
  std::exception_ptr lost;
  for (int r = first; r < last; ++r) {
    const auto row_at =
        target.sharding().global_rows(r, static_cast<std::int64_t>(target.rows()), target.comm().size());
    for (std::int64_t begin = 0; begin < most; begin += detail::copied_at_once) {
      const std::int64_t first_row = std::min(begin, target.rows_of(r));
      const std::int64_t count = std::min(detail::copied_at_once, target.rows_of(r) - first_row);
      for (std::int64_t i = 0; i < count; ++i) rows.data()[i] = row_at(first_row + i);
      auto shard = target.shard(r).rows_between(first_row, first_row + count);
      if (detail::lies_elsewhere(exec, make_ref(shard))) {
        auto part = landed.first(count);
        gather(exec, source, rows.first(count), part, bounds::unchecked{}).join();
        try {
          if (lost == nullptr) copy(exec, part, shard).join();
        } catch (...) {  // the others count on this rank in the gathers that follow
          lost = std::current_exception();
        }
      } else {
        gather(exec, source, rows.first(count), shard, bounds::unchecked{}).join();
      }
    }
  }
  // A rank that has left may read the shards of the others by path::peer.
  auto note = detail::note_of<>("end of a copy", source);
  detail::collective end(source.comm(), note.add(" to ").add_number(target.number()));
  return end.guarded([&] {
    if (lost != nullptr) std::rethrow_exception(lost);
    end.agree();
    end.close();
    return ticket();
  });
}

}  // namespace ferry
