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
template <class Exec, class Table, class Policy, class Directory, class To, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const cached_table<Table, Policy, Directory>& from, To&& to, Policies... policies) {
  return detail::run_on_table(exec, "copy", from.core(), false, [&] {
    detail::require_foreign("copy", from.core(), to);
    return copy(exec, detail::read_only(from.whole()), to, policies...);
  });
}

/// copy to a cached table: the cached rows are read again afterwards. Arguments and errors are those of copy.
template <class Exec, class From, class Table, class Policy, class Directory, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const From& from, cached_table<Table, Policy, Directory>& to, Policies... policies) {
  detail::require_writable<Table>();
  return detail::run_on_table(exec, "copy", to.core(), true, [&] {
    detail::require_foreign("copy", to.core(), from);
    return copy(exec, from, to.whole(), policies...);
  });
}

/// copy from a cached table to another one.
template <class Exec, class Table, class Policy, class Directory, class ToTable, class ToPolicy,
          class ToDirectory, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const cached_table<Table, Policy, Directory>& from,
    cached_table<ToTable, ToPolicy, ToDirectory>& to, Policies... policies) {
  detail::require_writable<ToTable>();
  const auto moved = [&] { return copy(exec, detail::read_only(from.whole()), to.whole(), policies...); };
  const auto read = [&](const auto& run) {
    return detail::run_on_table(exec, "copy", from.core(), false, run);
  };
  const auto written = [&](const auto& run) {
    return detail::run_on_table(exec, "copy", to.core(), true, run);
  };
  // Both caches are held until the copy is enqueued. In the order of their addresses: two threads may copy
  // crosswise.
  if (&from.core() == &to.core()) return written(moved);
  if (std::less<>{}(&from.core(), &to.core())) return read([&] { return written(moved); });
  return written([&] { return read(moved); });
}

/// clone of the backing table of a cache, in the memory space of that table or in Space.
/// @{
template <class Exec, class Table, class Policy, class Directory>
[[nodiscard("the copy is only to be had from the future that this returns")]] auto clone(
    const Exec& exec, const cached_table<Table, Policy, Directory>& table, std::string label = {}) {
  return detail::run_on_table(exec, "clone", table.core(), false, [&] {
    return clone<typename Table::memory_space>(exec, table.whole(), std::move(label));
  });
}
template <MemorySpace Space, class Exec, class Table, class Policy, class Directory>
[[nodiscard("the copy is only to be had from the future that this returns")]] auto clone(
    const Exec& exec, const cached_table<Table, Policy, Directory>& table, std::string label = {}) {
  return detail::run_on_table(exec, "clone", table.core(), false,
                              [&] { return clone<Space>(exec, table.whole(), std::move(label)); });
}
/// @}

}  // namespace ferry
