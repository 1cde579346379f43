// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/received_rows.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>

namespace ferry {

namespace detail {

/// The rows of a shard that all batches name, in lists that are packed for their owners, or in the one batch
/// of a thread that acts for all ranks.
template <class Exec>
owned_rows<Exec> collect_rows(collective& call, const Exec& exec, const Exec& shard_exec, int rank,
                              const sharded_plan_storage<Exec>& plan, std::int64_t shard_rows) {
  using local_list = near_space<Exec>;
  const auto begin = begins_for(call, plan.items, plan.headers.in_begin, rank);
  owned_rows<Exec> owned;
  owned.rows = payload<std::int64_t, local_list>(shard_exec, "rows of all ranks", begin.back());
  exchange_parts lists(call, rank);
  lists.add(plan.items, plan.items.rows, begin, owned.rows.data(), 1);
  lists.template move<local_list>(exec, shard_exec);
  owned.plan = make_plan(shard_exec, owned.rows, shard_rows, bounds::unchecked{});
  return owned;
}

/// make_plan on a sharded table: buckets of each batch, and the rows of each shard, sorted by its owner.
template <class Bounds, class Exec, class Table, class Indices>
std::shared_ptr<const sharded_plan_storage<Exec>> plan_batches(const Exec& exec, const Indices& indices,
                                                               const Table& table, const call_note& note) {
  static constexpr const char* verb = "make_plan";
  collective call(table.comm(), note);
  try {
    const std::uint64_t number = call.next_number();
    const auto rows = static_cast<std::int64_t>(table.rows());
    const auto list = index_ref(indices);
    require_plan_shapes(list, rows, std::is_same_v<Bounds, bounds::clamp>);
    auto plan = std::make_shared<sharded_plan_storage<Exec>>(
        planned_tables{table.comm(), digest_of(table.sharding()), rows, Bounds::name, call.first(), number});
    const auto instance = [&](int rank) { return shard_instance(table.comm(), rank, exec); };
    std::shared_ptr<void> passing;
    plan->is_whole = call.is_whole();
    plan->batch = make_plan(exec, indices_near(exec, list, passing), rows, Bounds{});
    plan->items = bucket_rows<Bounds>(verb, exec, table, plan->batch);
    call.keep(plan->items.memory);
    batch_values<float, near_space<Exec>> lists;
    lists.row_of_item = plan->items.place;
    plan->headers = exchange_headers(call, plan->items, {},
                                     show_batch(call, exec, instance(call.first()), plan->items, lists));
    plan->in_place = agree_to_pull<Exec>(call, plan->headers);
    for (int r = call.first(); r < call.last(); ++r) {
      const auto shard_rows = static_cast<std::int64_t>(table.rows_of(r));
      plan->owned.push_back(plan->in_place ? join_rows(verb, instance(r), plan->headers, shard_rows)
                                           : collect_rows(call, exec, instance(r), r, *plan, shard_rows));
    }
    call.agree();
    call.close();
    return plan;
  } catch (...) {
    call.report_failure();
    throw;
  }
}

}  // namespace detail

/// Routes the indices of a batch to the ranks that own their rows, and sorts them there, once for all verbs
/// of the batch on this table and on tables like it: of the same group, rows and sharding.
///
///   exec      the execution space instance that the sorts are enqueued on
///   indices   contiguous rank-1 array of int32, uint32, int64 or uint64
///   table     the sharded table, also one of quantized rows
///   policies  bounds  default bounds::check; a verb that uses the plan reports the bad indices
///
/// Collective, see sharded_table. Blocks until the indices have been exchanged. Throws invalid_argument if
/// the indices are not a contiguous rank-1 array, and peer_error if that happened to another rank.
template <class Exec, class Indices, detail::ShardedRows Table, class... Policies>
  requires(detail::Fits<detail::make_plan_arguments, const Exec&, const Indices&, const Table&, Policies...>)
[[nodiscard]] sharded_plan<Exec> make_plan(const Exec& exec, const Indices& indices, const Table& table,
                                           Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_plan_arguments<Exec, Indices, chosen>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  return sharded_plan<Exec>(
      detail::plan_batches<bounds_policy>(exec, indices, table, detail::note_of<chosen>("make_plan", table)));
}

}  // namespace ferry
