// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/rows/clone.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/ticket.hpp>

#include <functional>
#include <string>
#include <utility>

namespace ferry {

/// copy from a cached table: all changes are written to host memory first. Arguments and errors are those of
/// copy. Of 8-bit rows the records are copied.
template <class Exec, class Table, class Policy, class To, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const cached_table<Table, Policy>& source, To&& target, Policies... policies) {
  return detail::run_on_table(exec, "copy", source.core(), false, [&] {
    detail::require_foreign("copy", source.core(), target);
    return copy(exec, detail::read_only(source.whole()), target, policies...);
  });
}

/// copy to a cached table: the cached rows are read again afterwards. Arguments and errors are those of copy.
template <class Exec, class From, class Table, class Policy, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const From& source, cached_table<Table, Policy>& target, Policies... policies) {
  detail::require_writable<Table>();
  return detail::run_on_table(exec, "copy", target.core(), true, [&] {
    detail::require_foreign("copy", target.core(), source);
    return copy(exec, source, target.whole(), policies...);
  });
}

/// copy from a cached table to another one.
template <class Exec, class Table, class Policy, class ToTable, class ToPolicy, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const cached_table<Table, Policy>& source, cached_table<ToTable, ToPolicy>& target,
    Policies... policies) {
  detail::require_writable<ToTable>();
  const auto move_rows = [&] {
    return copy(exec, detail::read_only(source.whole()), target.whole(), policies...);
  };
  const auto hold_source = [&](const auto& run) {
    return detail::run_on_table(exec, "copy", source.core(), false, run);
  };
  const auto hold_target = [&](const auto& run) {
    return detail::run_on_table(exec, "copy", target.core(), true, run);
  };
  // Both caches are held until the copy is enqueued. In the order of their addresses: two threads may copy
  // crosswise.
  if (&source.core() == &target.core()) return hold_target(move_rows);
  if (std::less<>{}(&source.core(), &target.core()))
    return hold_source([&] { return hold_target(move_rows); });
  return hold_target([&] { return hold_source(move_rows); });
}

/// clone of the backing table of a cache, in the memory space of that table or in Space.
/// @{
template <class Exec, class Table, class Policy>
[[nodiscard("the copy is only to be had from the future that this returns")]] auto clone(
    const Exec& exec, const cached_table<Table, Policy>& table, std::string label = {}) {
  return detail::run_on_table(exec, "clone", table.core(), false, [&] {
    return clone<typename Table::memory_space>(exec, table.whole(), std::move(label));
  });
}
template <MemorySpace Space, class Exec, class Table, class Policy>
[[nodiscard("the copy is only to be had from the future that this returns")]] auto clone(
    const Exec& exec, const cached_table<Table, Policy>& table, std::string label = {}) {
  return detail::run_on_table(exec, "clone", table.core(), false,
                              [&] { return clone<Space>(exec, table.whole(), std::move(label)); });
}
/// @}

}  // namespace ferry
