// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace ferry {

namespace detail {

/// Routes a batch by kernels of all ranks: the lists stay on their devices, and each owner joins and sorts
/// those of its shard. By the host, in which case the lists travel through its memory, if a rank can't.
template <class Bounds, class Exec, class Table, class Indices>
void route_for_plan(collective& call, const Exec& exec, const Table& table, const Indices& indices,
                    sharded_plan_storage<Exec>& storage) {
  constexpr const char* verb = "make_plan";
  constexpr bool may_pull = routes_by_kernels<Exec> && finds_owners_in_kernels<Table>;
  const auto ref = index_ref(indices);
  const int rank = call.first();
  if constexpr (may_pull)
    if (shows_batches(call) && kernels_read(exec, ref)) {
      storage.batch = make_plan(exec, indices, static_cast<std::int64_t>(table.rows()), Bounds{});
      storage.routes.batch = route_by_kernels<Bounds>(verb, exec, table, storage.batch, storage.lists);
      call.keep(storage.lists.memory);
    }
  if (storage.lists.memory == nullptr) storage.routes.batch = route_batch<Bounds>(verb, exec, table, ref);
  batch_offer offer;
  if constexpr (may_pull)
    offer =
        show_lists(call, exec, shard_instance(table.comm(), rank, exec), storage.lists, storage.routes.batch);
  storage.headers = exchange_headers(call, storage.routes.batch, {}, offer);
  take_headers(storage.routes, call.is_whole(), storage.headers);
  if constexpr (may_pull)
    if (!call.is_whole() && agree_to_pull<Exec>(call, storage.headers)) {
      storage.owned = join_batches(verb, shard_instance(table.comm(), rank, exec), rank, storage.headers,
                                   static_cast<std::int64_t>(table.rows_of(rank)));
      storage.on_devices = true;
      storage.plans.push_back(storage.owned.plan);
      return;
    }
  if constexpr (may_pull)
    if (storage.lists.memory != nullptr) bring_to_host(exec, storage.lists, storage.routes.batch);
  if (!call.is_whole()) exchange_rows(call, table.label(), storage.routes);
  for (int r = call.first(); r < call.last(); ++r)
    storage.plans.push_back(make_plan(shard_instance(table.comm(), r, exec), storage.routes.rows_for(r),
                                      static_cast<std::int64_t>(table.rows_of(r)), bounds::unchecked{}));
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
/// @{
template <class Exec, class Indices, class T, class Space, class Spread, class... Policies>
[[nodiscard]] sharded_plan<Exec> make_plan(const Exec& exec, const Indices& indices,
                                           const sharded_table<T, Space, Spread>& table, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_plan_arguments<Exec, Indices, chosen>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto ref = detail::index_ref(indices);
  detail::collective call(table.comm(), detail::note_of<chosen>("make_plan", table));
  return call.guarded([&] {
    const std::uint64_t number = call.next_number();
    detail::require_plan_shapes(ref, static_cast<std::int64_t>(table.rows()),
                                std::is_same_v<bounds_policy, bounds::clamp>);
    auto storage = std::make_shared<detail::sharded_plan_storage<Exec>>(detail::planned_tables{
        table.comm(), detail::digest_of(table.sharding()), static_cast<std::int64_t>(table.rows()),
        bounds_policy::name, call.first(), number});
    detail::route_for_plan<bounds_policy>(call, exec, table, indices, *storage);
    call.agree();
    call.close();
    return sharded_plan<Exec>(std::move(storage));
  });
}
template <class Exec, class Indices, class Q, class Space, class ScaleSpace, class Spread, class... Policies>
[[nodiscard]] sharded_plan<Exec> make_plan(const Exec& exec, const Indices& indices,
                                           const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& table,
                                           Policies... policies) {
  return make_plan(exec, indices, table.stored(), policies...);
}
/// @}

}  // namespace ferry
