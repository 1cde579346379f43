// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/gather_bags.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/read_quantized.hpp>
#include <ferry/distributed/sharded/detail/sharded_read.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/runtime/ticket.hpp>

#include <type_traits>

namespace ferry {

namespace detail {

/// `extra` as in pool_checked.
template <class... Policies, class Exec, class Table, class Indices, class Offsets, class Pooled, class Extra>
ticket pool_sharded_bags(const Exec& exec, const Table& table, const Indices& indices, const Offsets& offsets,
                         Pooled& pooled, const Extra& extra) {
  using bag = bag_policies<Policies...>;
  using chosen = local_policies<typename bag::chosen>;
  require_sharded_bags<Exec, Table, Indices, Offsets, Pooled, chosen, false>();
  const auto sink = make_ref(pooled);
  static_assert(NumberElement<typename sharded_kind<Table>::gathered> &&
                    NumberElement<typename decltype(sink)::value_type>,
                "ferry: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers.");
  const auto& named = sharded_rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  using reader = typename sharded_kind<Table>::template reader<chosen, Exec>;
  read_together<
      sharded_pool<pool_choice<bag, reader, Table>, Exec, const Table, std::remove_cvref_t<decltype(named)>,
                   std::remove_const_t<decltype(bags)>, std::remove_const_t<decltype(sink)>, Extra>>
      verb(exec, table, named, bags, sink, extra,
           add_plan(note_of<>("gather_bags", table), indices, fetches_once<typename bag::chosen>));
  return verb.call.run(verb);
}

}  // namespace detail

/// pooled[b] = the rows of bag b of this rank's batch, pooled. Arguments and policies are those of
/// gather_bags from an ordinary table, and so are the bits: a bag lies within the batch of one rank, and the
/// rows that have come from their owners are added in the order of their positions. Rows of a
/// sharded_quantized_table come as codes, and are decoded as they are added. Indices may also be a
/// sharded_plan, or a row_plan for tables of as many rows. path::exchange fetches each different row once.
///
/// Collective, see sharded_table; a rank without bags passes empty arrays. Blocks until the rows are pooled.
/// ticket::wait() throws out_of_range for bad indices and offsets of this rank; other ranks do not learn of
/// them. Throws invalid_argument for shapes that do not fit, and peer_error if that happened to another
/// rank.
template <class Exec, detail::ShardedRows Table, class Indices, class Offsets, class Pooled,
          class... Policies>
  requires(detail::Fits<detail::gather_bags_arguments, const Exec&, const Table&, const Indices&,
                        const Offsets&, Pooled, Policies...> &&
           (!detail::AnArray<Policies> && ...))
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const Table& table, const Indices& indices, const Offsets& offsets, Pooled&& pooled,
    Policies...) {
  detail::require_output<Pooled>();
  return detail::pool_sharded_bags<Policies...>(exec, table, indices, offsets, pooled, detail::no_array{});
}

/// As above, with the weights of the positions, or under pooling::max the array that receives the positions
/// of the maxima, in this rank's batch.
template <class Exec, detail::ShardedRows Table, class Indices, class Offsets, class Pooled, class Extra,
          class... Policies>
  requires(detail::AnArray<Extra>&& detail::Fits<detail::gather_bags_arguments, const Exec&, const Table&,
                                                 const Indices&, const Offsets&, Pooled, Extra, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const Table& table, const Indices& indices, const Offsets& offsets, Pooled&& pooled,
    Extra&& extra, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_output<Pooled>();
  detail::require_bag_extra<Exec, typename bag::pooling, Extra>();
  return detail::pool_sharded_bags<Policies...>(exec, table, indices, offsets, pooled, make_ref(extra));
}

}  // namespace ferry
