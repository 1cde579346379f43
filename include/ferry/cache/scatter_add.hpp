// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/cache/detail/update_cached.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/row_jobs.hpp>

#include <type_traits>

namespace ferry {

/// scatter_add into a cached table. Arguments, bits and errors are those of scatter_add; on path::direct
/// only.
template <class Exec, class Table, class Policy, class Directory, class Indices, class Values,
          class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket scatter_add(
    const Exec& exec, cached_table<Table, Policy, Directory>& table, const Indices& indices,
    const Values& values, Policies...) {
  detail::require_writable<Table>();
  using chosen = detail::chosen_policies<Policies...>;
  using backing = detail::backing_table<Table>;
  detail::require_row_verb<Exec, typename backing::added_to, Indices, Values, chosen, true>();
  detail::require_cached_verb<Exec, chosen>();
  using element = typename backing::added_to::value_type;
  const auto from = detail::read_only(make_ref(values));
  using value = std::remove_cvref_t<decltype(*from.data)>;
  static_assert(NumberElement<element> && NumberElement<value>,
                "ferry: scatter_add adds, so the elements of table and values must be numbers.");
  using duplicates_policy = typename chosen::template get<duplicates_category, duplicates::sum>;
  const detail::cache_use in(table.core(), "scatter_add");
  const auto to = table.ref();
  const auto& named = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("scatter_add", to, named, from);
  using job = detail::add_job<element, typename backing::memory_space>;
  return detail::update_cached<chosen, duplicates_policy>(exec, "scatter_add", table.core(), job{to}, named,
                                                          from);
}

}  // namespace ferry
