// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/gather_in_parts.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

/// A span, vector or array of as many elements as a sharded table, in its extents; other arrays as they are.
template <class Array, class Table, class Ref>
Ref in_extents_of_table(const Table& table, const Ref& array) {
  if constexpr (is_sequence_v<std::remove_cvref_t<Array>>)
    if (const auto whole = whole_ref(table); array.size() == whole.size()) return in_extents_of(whole, array);
  return array;
}

}  // namespace detail

/// A sharded table = an array of all its rows, in the order of the row numbers, with conversion if the
/// element types differ. A span, vector or array of as many elements fits, too. Collective, see
/// sharded_table: every rank passes an array with the same contents and copies the rows that it owns. Blocks
/// until all ranks have copied.
template <class Exec, class From, class T, class Space, class Spread>
  requires(detail::AnArray<From>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const From& array, sharded_table<T, Space, Spread>& table) {
  const auto source = detail::in_extents_of_table<From>(table, detail::read_only(make_ref(array)));
  detail::collective call(table.comm(), detail::note_of<>("copy into the shards", table));
  return call.guarded([&]() -> ticket {
    detail::require_same_extents("copy", table, source);
    detail::require_apart("copy", call, table, source);
    call.agree();
    for (int r = call.first(); r < call.last(); ++r) {
      // A device's array is read by its own instance, host memory by that of the shard's device.
      const Exec instance = decltype(source)::memory_space::is_host_accessible
                                ? detail::shard_instance(table.comm(), r, exec)
                                : exec;
      if (!(instance == exec)) execution_backend<Exec>::fence(exec, "ferry::copy::begin");
      detail::gather_rows_of_shard(instance, source, table, r, table.shard(r));
    }
    call.agree();
    call.close();
    return {};
  });
}

/// An array of all rows = a sharded table, in the order of the row numbers, with conversion if the element
/// types differ. A span, vector or array of as many elements fits, too. Collective, see sharded_table: every
/// rank gets all rows in an array of its own; a rank that passes an array without rows gets none. Blocks
/// until the rows are there.
template <class Exec, class T, class Space, class Spread, class To>
  requires(detail::AnArray<To>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_table<T, Space, Spread>& table, To&& array) {
  detail::require_output<To>();
  const auto sink = detail::in_extents_of_table<To>(table, make_ref(array));
  detail::gather_all_rows("copy", exec, table, sink, detail::note_of<>("copy", table));
  return {};
}

/// A sharded table = another one of the same extents, of any sharding, with conversion if the element
/// types differ. Collective, see sharded_table. If the two belong to different groups the calling thread
/// must act for both groups as a whole. Blocks until all rows are there.
template <class Exec, class T, class Space, class Spread, class U, class ToSpace, class ToSpread>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_table<T, Space, Spread>& source,
    sharded_table<U, ToSpace, ToSpread>& target) {
  auto note = detail::note_of<>("copy", source);
  note.add(" to ").add_number(target.number());
  detail::gather_in_parts<Exec, U> parts;
  int first = 0, last = 0;
  std::int64_t most = 0;
  detail::collective call(source.comm(), note);
  call.guarded([&] {
    if (source.rows() != target.rows() || source.width() != target.width())
      throw invalid_argument(detail::joined("ferry::copy: the extents of ", source.describe(), " and ",
                                            target.describe(), " differ"));
    if (!(source.comm() == target.comm()) && !(call.is_whole() && target.comm().acting_rank() < 0))
      throw invalid_argument(detail::joined(
          "ferry::copy: ", source.describe(), " and ", target.describe(),
          " belong to different groups, and the calling thread does not act for both as a whole"));
    const detail::collective target_call(target.comm(), note);
    first = target_call.first();
    last = target_call.last();
    bool has_buffer = detail::passes_host_threads<Exec, ToSpace>;
    for (int r = first; r < last; ++r) {
      detail::require_apart("copy", call, source, make_ref(target.shard(r)));
      has_buffer = has_buffer || detail::lies_elsewhere(exec, make_ref(target.shard(r)));
    }
    for (int r = 0; r < target.comm().size(); ++r) most = std::max(most, target.rows_of(r));
    parts = {exec, most, target.width(), has_buffer};
    call.agree();
    call.close();
  });
  for (int r = first; r < last; ++r)
    for (std::int64_t begin = 0; begin < most; begin += parts.rows()) {
      const std::int64_t part_begin = std::min(begin, target.rows_of(r));
      const std::int64_t part_end = std::min(begin + parts.rows(), target.rows_of(r));
      auto part = target.shard(r).rows_between(part_begin, part_end);
      parts.gather_part(exec, source, part_begin, part_end, detail::row_numbers(target, r), part);
    }
  parts.finish(source.comm(), note);
  return {};
}

}  // namespace ferry
