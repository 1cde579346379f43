// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/gather_bags.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/cache/detail/pool_cached.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

/// gather_bags from a cached table. Arguments, bits and errors are those of gather_bags; on path::direct
/// only.
template <class Exec, class Table, class Policy, class Directory, class Indices, class Offsets, class Pooled,
          class... Policies>
  requires(!detail::AnArray<Policies> && ...)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const cached_table<Table, Policy, Directory>& table, const Indices& indices,
    const Offsets& offsets, Pooled&& pooled, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  using checked = typename detail::backing_table<Table>::checked;
  detail::require_bag_verb<Exec, checked, Indices, Offsets, Pooled, bag>();
  detail::require_output<Pooled>();
  detail::require_cached_verb<Exec, typename bag::chosen>();
  return detail::pool_cached_checked<bag>(exec, table, indices, offsets, pooled, detail::no_array{});
}

/// As above, with the weights of the positions, or under pooling::max the array for the positions of the
/// maxima.
template <class Exec, class Table, class Policy, class Directory, class Indices, class Offsets, class Pooled,
          class Extra, class... Policies>
  requires(detail::AnArray<Extra> && (!detail::AnArray<Policies> && ...))
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const cached_table<Table, Policy, Directory>& table, const Indices& indices,
    const Offsets& offsets, Pooled&& pooled, Extra&& extra, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  using checked = typename detail::backing_table<Table>::checked;
  detail::require_bag_verb<Exec, checked, Indices, Offsets, Pooled, bag>();
  detail::require_output<Pooled>();
  detail::require_cached_verb<Exec, typename bag::chosen>();
  detail::require_bag_extra<Exec, typename bag::pooling, Extra>();
  return detail::pool_cached_checked<bag>(exec, table, indices, offsets, pooled, make_ref(extra));
}

}  // namespace ferry
