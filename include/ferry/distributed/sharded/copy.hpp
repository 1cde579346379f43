// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/detail/copy_between_shards.hpp>
#include <ferry/distributed/sharded/detail/copy_from_shards.hpp>
#include <ferry/distributed/sharded/detail/copy_into_shards.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

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
  detail::copy_into_shards<Exec, sharded_table<T, Space, Spread>, std::remove_const_t<decltype(source)>> verb(
      exec, source, table, detail::note_of<>("copy into the shards", table));
  return verb.call.run(verb);
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
  detail::copy_from_shards<Exec, const sharded_table<T, Space, Spread>, std::remove_const_t<decltype(sink)>>
      verb(exec, table, sink, detail::note_of<>("copy", table));
  verb.call.run(verb).drop();
  if (verb.has_lists) verb.gather_parts();
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
  if (!verb.has_lists) return {};
  verb.gather_shards();
  auto end_note = detail::note_of<>("end of a copy", source);
  detail::end_of_copy<source_type> end(source, verb.failure,
                                       end_note.add(" to ").add_number(target.number()));
  return end.call.run(end);
}

}  // namespace ferry
