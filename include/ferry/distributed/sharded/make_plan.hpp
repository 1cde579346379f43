// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
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

/// make_plan on a sharded table. Kernels of all ranks route the batches if they can: the lists stay on their
/// devices, and each owner joins and sorts those of its shard. Else the lists travel through host memory.
template <class Bounds, class Exec, class Table, class Indices>
struct sharded_planning : verb_on_shards<const Table> {
  using base = verb_on_shards<const Table>;
  using base::call, base::table;
  static constexpr const char* verb = "make_plan";
  static constexpr bool may_pull = routes_by_kernels<Exec> && finds_owners_in_kernels<Table>;

  const Exec& exec;
  const Indices& indices;
  std::shared_ptr<sharded_plan_storage<Exec>> result{};

  sharded_planning(const Exec& instance, const Indices& list, const Table& rows, const call_note& note)
      : base(rows, note), exec(instance), indices(list) {}

  void check() {
    const std::uint64_t number = call.next_number();
    require_plan_shapes(index_ref(indices), this->rows(), std::is_same_v<Bounds, bounds::clamp>);
    result = std::make_shared<sharded_plan_storage<Exec>>(planned_tables{
        table.comm(), digest_of(table.sharding()), this->rows(), Bounds::name, call.first(), number});
  }
  void route() {
    const auto list = index_ref(indices);
    if constexpr (may_pull)
      if (shows_batches(call) && kernels_read(exec, list)) {
        result->batch = make_plan(exec, indices, this->rows(), Bounds{});
        result->routes.batch = route_by_kernels<Bounds>(verb, exec, table, result->batch, result->lists);
        call.keep(result->lists.memory);
      }
    if (result->lists.memory == nullptr) result->routes.batch = route_batch<Bounds>(verb, exec, table, list);
  }
  void agree() {
    batch_offer offer;
    if constexpr (may_pull)
      offer = show_lists(call, exec, instance(call.first()), result->lists, result->routes.batch);
    result->headers = exchange_headers(call, result->routes.batch, {}, offer);
    take_headers(result->routes, call.is_whole(), result->headers);
    if constexpr (may_pull)
      result->on_devices = !call.is_whole() && agree_to_pull<Exec>(call, result->headers);
  }
  void move() {
    if (result->on_devices) return;
    if constexpr (may_pull)
      if (result->lists.memory != nullptr) bring_to_host(exec, result->lists, result->routes.batch);
    if (!call.is_whole()) exchange_rows(call, table.label(), result->routes);
  }
  void apply() {
    for (int r = call.first(); r < call.last(); ++r) plan_shard(r);
    call.agree();
  }

 private:
  [[nodiscard]] Exec instance(int rank) const { return shard_instance(table.comm(), rank, exec); }
  void plan_shard(int rank) {
    const auto shard_rows = static_cast<std::int64_t>(table.rows_of(rank));
    if constexpr (may_pull)
      if (result->on_devices) {
        result->owned = join_batches(verb, instance(rank), rank, result->headers, shard_rows);
        result->plans.push_back(result->owned.plan);
        return;
      }
    result->plans.push_back(
        make_plan(instance(rank), result->routes.rows_for(rank), shard_rows, bounds::unchecked{}));
  }
};

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
  detail::sharded_planning<bounds_policy, Exec, sharded_table<T, Space, Spread>, Indices> verb(
      exec, indices, table, detail::note_of<chosen>("make_plan", table));
  return sharded_plan<Exec>(verb.call.run(verb));
}
template <class Exec, class Indices, class Q, class Space, class ScaleSpace, class Spread, class... Policies>
[[nodiscard]] sharded_plan<Exec> make_plan(const Exec& exec, const Indices& indices,
                                           const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& table,
                                           Policies... policies) {
  return make_plan(exec, indices, table.stored(), policies...);
}
/// @}

}  // namespace ferry
