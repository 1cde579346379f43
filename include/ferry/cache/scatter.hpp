// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/cache/detail/scatter_codes.hpp>
#include <ferry/cache/detail/update_cached.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/row_jobs.hpp>

#include <type_traits>

namespace ferry {

/// scatter into a cached table: cached rows change in device memory alone, the others in host memory, by one
/// kernel. Arguments, bits and errors are those of scatter; on path::direct only.
template <class Exec, class Table, class Policy, class Directory, class Indices, class Values,
          class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket scatter(
    const Exec& exec, cached_table<Table, Policy, Directory>& table, const Indices& indices,
    const Values& values, Policies...) {
  detail::require_writable<Table>();
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, typename detail::backing_table<Table>::checked, Indices, Values, chosen,
                           true>();
  detail::require_cached_verb<Exec, chosen>();
  using element = typename detail::backing_table<Table>::value_type;
  using duplicates_policy = typename chosen::template get<duplicates_category, duplicates::last>;
  const auto from = detail::read_only(make_ref(values));
  using value = std::remove_cvref_t<decltype(*from.data)>;
  if constexpr (detail::is_codes<Table>)
    detail::require_quantizable<Values>();
  else
    detail::require_convertible<element, value>();
  static_assert(
      !detail::in_any_order<duplicates_policy>,
      "ferry: duplicates::sum_any_order adds to rows where they lie, which scatter_add and step do; scatter replaces rows, so it takes duplicates::sum.");
  static_assert(!duplicates_policy::combines || NumberElement<value>,
                "ferry: duplicates::sum and duplicates::mean need elements that are numbers.");
  const detail::cache_use in(table.core(), "scatter");
  const auto to = table.ref();
  const auto& named = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("scatter", to, named, from);
  if constexpr (!detail::is_codes<Table>) {
    using job = detail::replace_job<element, typename Table::memory_space>;
    return detail::update_cached<chosen, duplicates_policy>(exec, "scatter", table.core(), job{to}, named,
                                                            from);
  } else if constexpr (detail::is_plan<Indices>) {
    return detail::scatter_codes<duplicates_policy>(exec, table.core(), to, named, from);
  } else {
    using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
    return detail::scatter_codes<duplicates_policy>(
        exec, table.core(), to, detail::plan_rows_of<bounds_policy>(exec, named, to.rows()), from);
  }
}

}  // namespace ferry
