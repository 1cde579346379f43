// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/gather_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
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
  using asked = typename bag::chosen;
  using pooling = typename bag::pooling;
  using chosen = local_policies<asked>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  require_sharded_bags<Exec, Table, Indices, Offsets, Pooled, chosen, false>();
  const auto sink = make_ref(pooled);
  using out_space = typename decltype(sink)::memory_space;
  static_assert(NumberElement<typename sharded_kind<Table>::gathered> &&
                    NumberElement<typename decltype(sink)::value_type>,
                "ferry: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers.");
  constexpr bool finds = pooling::selects && !std::is_same_v<Extra, no_array>;
  const auto& named = sharded_rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  collective call(table.comm(), add_plan(note_of<>("gather_bags", table), indices, fetches_once<asked>));
  try {
    require_sharded_bag_batch<chosen, Exec>("gather_bags", call, table, named, bags, sink);
    require_extra_output<pooling>("gather_bags", extra, routed_positions(named), sink);
    const auto& list = list_of_batch(named);
    if (agree_to_pool<asked, out_space, Extra, finds>(call, exec, table, named)) {
      if constexpr (reads_peers<Exec, Table, out_space>) {
        ticket read = pool_in_place<pooling, bounds_policy>(exec, table, list, bags, extra, sink);
        call.agree();  // no rank leaves before all have read: the rows are those of one point in time
        call.close();
        return read;
      }
    }
    row_requests<Exec, Table> requests(call, "gather_bags", exec, table);
    constexpr bool is_planned = is_sharded_plan<Indices>;  // then all ranks ask alike
    requests.template ask<bounds_policy>(
        named, is_planned ? fetches_once<asked> : should_fetch_once<asked>(table, list));
    using home = payload_space<Exec, typename Table::memory_space, out_space>;
    const auto arrived = fetch_rows<chosen, home>(requests, table);
    if constexpr (Table::sharding_type::replicates) call.agree();  // as ranks that read in place
    call.close();
    return pool_arrived<pooling, bounds_policy>("gather_bags", exec, table, named, bags, requests, arrived,
                                                extra, sink);
  } catch (...) {
    call.report_failure();
    throw;
  }
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
