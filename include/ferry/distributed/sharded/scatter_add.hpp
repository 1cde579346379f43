// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/write_sharded.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/rows/scatter_add.hpp>

#include <type_traits>

namespace ferry {

/// table[r] += the combined values of all positions that name row r, in all ranks' batches, in the order
/// (rank, position).
/// Arguments and policies are those of scatter_add on an ordinary table; indices may also be a
/// sharded_plan, or a row_plan for tables of as many rows. One more policy: reduce::in_order (default), or
/// reduce::by_rank, another order that sends fewer rows.
///
/// Collective, see sharded_table; a rank without values passes empty arrays, of the same element type. Blocks
/// until all ranks have written. ticket::wait() throws out_of_range on all ranks where one has a bad index,
/// naming the rank, and invalid_argument on all under duplicates::reject; nothing is then written anywhere.
/// Throws invalid_argument for shapes that do not fit, and peer_error where that happened to another rank.
template <class Exec, class T, class Space, class Spread, class Indices, class Values, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket scatter_add(
    const Exec& exec, sharded_table<T, Space, Spread>& table, const Indices& indices, const Values& values,
    Policies...) {
  using asked = detail::summing_policies<Policies...>;
  using chosen = typename asked::chosen;
  detail::require_sharded_verb<Exec, sharded_table<T, Space, Spread>, Indices, Values, chosen, true>();
  using duplicates_policy = typename asked::duplicates;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto from = detail::read_only(make_ref(values));
  using value = std::remove_const_t<typename decltype(from)::value_type>;
  const auto& named = detail::sharded_rows_named_by(indices);
  detail::collective call(
      table.comm(),
      detail::add_plan(detail::note_of<chosen, typename asked::reduce, value>("scatter_add", table),
                       indices));
  return call.guarded([&] {
    detail::require_sharded_batch<Exec, chosen>("scatter_add", call, table, named, from);
    detail::require_array_device("scatter_add", exec, from);
    return detail::write_by_routes<typename asked::reduce, duplicates_policy, bounds_policy>(
        call, "scatter_add", exec, table, named, from, {}, detail::any_values{},
        [&](int rank, const auto& rows, const auto& rows_values) {
          scatter_add(detail::shard_instance(table.comm(), rank, exec), table.shard(rank), rows, rows_values,
                      detail::shard_policies<chosen, duplicates_policy>{})
              .join();
        });
  });
}

}  // namespace ferry
