// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/sharded/detail/bag_lists.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <span>
#include <type_traits>

/// step_bags on a sharded table by kernels of all ranks.
namespace ferry::detail {

/// The arguments of step_bags on a sharded table, and its parts if kernels of all ranks can do it: each owner
/// reads the gradient of its position's bag for each row, where it lies. `extra` are the weights of the
/// positions, or under pooling::max the positions of the maxima.
template <class Bag, class Exec, class Rule, class Table, class State, class Named, class Bags, class Grads,
          class Extra>
struct bag_step_by_kernels : sharded_call<Exec, Table, Named> {
  using base = sharded_call<Exec, Table, Named>;
  using base::call, base::exec, base::named, base::routes, base::table;
  using typename base::wire;
  using pooling = typename Bag::pooling;
  using chosen = typename Bag::chosen;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  using element = typename Table::value_type;
  using value = std::remove_const_t<typename Grads::value_type>;
  using compute = step_type<element, typename State::value_type, value>;
  using home = payload_space<Exec, typename Table::memory_space, typename Grads::memory_space>;
  static constexpr bool divides = pooling::divides;
  static constexpr bool has_extra = !std::is_same_v<Extra, no_array>;
  static constexpr bool weighs = has_extra && !pooling::selects;
  using sent = std::conditional_t<divides, compute, value>;
  /// Weights travel with the positions, positions of maxima with the bags.
  using extra_value =
      std::conditional_t<weighs, std::remove_const_t<typename Extra::value_type>, std::int64_t>;

  /// True if kernels of some ranks may do it: without weights and maxima, which travel with positions and
  /// bags.
  static constexpr bool may_offer =
      routes_by_kernels<Exec> && finds_owners_in_kernels<Table> && !has_extra && !pooling::selects;
  /// True if those of this rank may, which depends on the space of its gradients.
  static constexpr bool may_pull = may_offer && (is_host_exec<Exec> || !home::is_host_accessible);
  static constexpr bool may_read_in_place = reads_other_memory<Exec, typename Table::memory_space>;

  const Rule& rule;
  State& state;
  const Bags& bags;
  const Grads& grads;
  const Extra& extra;
  routed_lists lists{};
  bag_lists<compute, home> listed{};
  batch_headers headers{};
  bool pulls = false;
  bool in_place = false;
  owned_batch shard_plan{};  ///< that of a plan, without places
  const owned_batch* owned = nullptr;
  values_in_place<sent> found_values{};
  pulled_rows<sent> pulled{};
  batch_findings scanned{};

  bag_step_by_kernels(const Exec& instance, const Rule& optimizer, Table& rows, State& moments,
                      const Named& indices, const Bags& offsets, const Grads& pooled, const Extra& more,
                      const call_note& note)
      : base("step_bags", instance, rows, indices, false, note),
        rule(optimizer),
        state(moments),
        bags(offsets),
        grads(pooled),
        extra(more) {}

  void check() {
    require_sharded_bag_batch<chosen, Exec>(this->verb, call, table, named, bags, grads);
    const std::int64_t positions = routed_positions(named);
    require_a_bag(this->verb, positions, grads);
    require_extra<pooling>(this->verb, extra, positions, grads);
    require_sharded_step<count_policy, compute>(this->verb, call, rule, table, state);
  }
  /// The gradients that owners get.
  [[nodiscard]] auto shared() const {
    if constexpr (divides)
      return read_only(make_ref(listed.divided));
    else
      return grads;
  }
  /// Kernels route the positions, and find their bags.
  void route_on_device() {
    constexpr bool checks = !std::is_same_v<bounds_policy, bounds::unchecked>;
    const auto rows = static_cast<std::int64_t>(table.rows());
    const auto take = [&](const routed_lists& positions, std::int64_t items, const std::int64_t* row_of) {
      listed = list_bags<divides, compute, home>(exec, positions.place, items, row_of, bags,
                                                 routed_positions(named), checks, grads);
      scanned.take_offsets(listed.report);
      call.keep(listed.memory);
    };
    if constexpr (base::is_planned) {
      const auto& plan = named.storage();
      if (plan.on_devices) take(plan.lists, plan.routes.batch.routed(), rows_if_skipped(plan.batch));
    } else if constexpr (divides && std::is_same_v<bounds_policy, bounds::skip> && !is_plan<Named>) {
      const row_plan plan = make_plan(exec, named, rows, bounds_policy{});
      routes.batch = route_by_kernels<bounds_policy>(this->verb, exec, table, plan, lists, grads);
      call.keep(lists.memory);
      take(lists, routes.batch.routed(), rows_if_skipped(plan));
    } else {
      routes.batch = route_by_kernels<bounds_policy>(this->verb, exec, table, named, lists, grads);
      call.keep(lists.memory);
      const std::int64_t* row_of = nullptr;
      if constexpr (is_plan<Named>) row_of = rows_if_skipped(named);
      take(lists, routes.batch.routed(), row_of);
    }
  }
  /// The row of each position of a plan that leaves some out.
  [[nodiscard]] static const std::int64_t* rows_if_skipped(const row_plan& plan) {
    return plan.storage()->bounds == bounds::skip::name ? plan.storage()->row_of : nullptr;
  }
  /// The part of this rank's batch that owners may read: the bag of each item instead of its position.
  template <lane_parts Parts>
  [[nodiscard]] batch_offer own_offer(routed_lists offered, const route_groups& route) const {
    if (listed.memory == nullptr) return {};
    offered.place = listed.bags;
    return show_batch<Parts>(call, exec, this->instance(call.rank()), offered, route, shared());
  }
  /// The offers of a plan whose lists lie on the devices of all ranks.
  void agree_on_bags() {
    if constexpr (base::is_planned) {
      const auto& plan = named.storage();
      batch_offer offer;
      if constexpr (may_pull) offer = own_offer<lane_parts::shared_values>(plan.lists, plan.routes.batch);
      headers = plan.headers;
      headers.offers = call.all_gather(std::span<const batch_offer>(&offer, 1));
      pulls = reach_batches<Exec>(call, headers);
      shard_plan.plan = plan.owned.plan;
      owned = &shard_plan;
    }
  }
  /// The gradients of the rows of this rank's shard, out of the batches of all.
  void pull() {
    call.begin_reads();
    const int rank = call.rank();
    const Exec shard_exec = this->instance(rank);
    const auto shard_rows = static_cast<std::int64_t>(table.rows_of(rank));
    in_place = may_read_in_place && (is_host_exec<Exec> || values_for(rank, headers, 1).on_devices);
    if (in_place)
      found_values =
          find_values<sent>(this->verb, shard_exec, rank, headers, shard_rows, this->width(), owned);
    else
      pulled = pull_rows<sent, true>(this->verb, shard_exec, rank, headers, this->width(), shard_rows, owned);
  }
  void step_pulled() {
    const int rank = call.rank();
    const Exec shard_exec = this->instance(rank);
    const waited_when_thrown<Exec> reads(shard_exec);  // memory of other ranks
    using step_policies =
        chosen_policies<policies<shard_path_t<chosen>, bounds::unchecked, duplicates::sum, count_policy,
                                 typename chosen::template get<rounding_category, rounding::nearest>>>;
    const auto step_on = [&](const row_plan& plan, const auto& sources) {
      step_rows<step_policies, values_of_ranks>(shard_exec, rule_of_shard(rule, table, state, rank),
                                                plain_rows(make_ref(table.shard(rank))), state.shard(rank),
                                                plan, sources)
          .join();
    };
    if (in_place)
      step_on(found_values.plan, found_values.values);
    else
      step_on(pulled.plan, read_only(make_ref(pulled.values)));
    call.agree();  // no rank returns before all have written
  }
};

}  // namespace ferry::detail
