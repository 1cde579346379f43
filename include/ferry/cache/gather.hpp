// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/cache/detail/gather_cached.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/runtime/ticket.hpp>

namespace ferry {

namespace detail {

/// For the gather into a new tensor.
template <class Table, class Policy, class Directory>
struct gathered_rows<cached_table<Table, Policy, Directory>> {
  using table_for_checks = typename backing_table<Table>::checked;
  using element = typename backing_table<Table>::gathered;
  static auto extents_of(const cached_table<Table, Policy, Directory>& table) { return table.ref(); }
};

}  // namespace detail

/// gather from a cached table: rows of device memory and of host memory by one kernel, after a small one that
/// looks them up. By indices, with a dense directory and uncounted rows of up to 256 bytes, one kernel does
/// both. Arguments, bits and errors are those of gather; on path::direct only.
template <class Exec, class Table, class Policy, class Directory, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const cached_table<Table, Policy, Directory>& table, const Indices& indices, Out&& out,
    Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  using backing = detail::backing_table<Table>;
  detail::require_row_verb<Exec, typename backing::checked, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  detail::require_cached_verb<Exec, chosen>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const detail::cache_use in(table.core(), "gather");
  const auto from = detail::read_only(table.ref());
  const auto to = make_ref(out);
  if constexpr (detail::is_codes<Table>)
    detail::require_quantizable<Out>();
  else
    detail::require_convertible<typename decltype(to)::value_type, typename backing::gathered>();
  const auto& named = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("gather", from, named, to);
  return detail::gather_cached<bounds_policy, detail::is_codes<Table>>(exec, table.core(), from, named, to);
}

/// As above, into a new tensor in Space: see the gather into a new tensor from any table.
template <MemorySpace Space, class Exec, class Table, class Policy, class Directory, class Indices,
          class... Policies>
[[nodiscard("the rows are only to be had from the future that this returns")]] auto gather(
    const Exec& exec, const cached_table<Table, Policy, Directory>& table, const Indices& indices,
    Policies... asked) {
  using element = typename detail::backing_table<Table>::gathered;
  return detail::gather_into_new<element, Space>(exec, table, indices, asked...);
}

/// As above, with the elements converted to T.
template <MemorySpace Space, Element T, class Exec, class Table, class Policy, class Directory, class Indices,
          class... Policies>
[[nodiscard("the rows are only to be had from the future that this returns")]] auto gather(
    const Exec& exec, const cached_table<Table, Policy, Directory>& table, const Indices& indices,
    Policies... asked) {
  return detail::gather_into_new<T, Space>(exec, table, indices, asked...);
}

}  // namespace ferry
