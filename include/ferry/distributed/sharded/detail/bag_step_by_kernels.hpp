// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/distributed/sharded/detail/bag_lists.hpp>
#include <ferry/distributed/sharded/detail/bag_weight_gradients.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/gather_peers.hpp>
#include <ferry/distributed/sharded/detail/gather_together.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/detail/write_choice.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <type_traits>

/// step_bags on a sharded table by kernels of all ranks.
namespace ferry::detail {

/// The arguments of step_bags on a sharded table, and its parts if kernels of all ranks can do it: each owner
/// reads the gradient of its position's bag for each row, where it lies. Under pooling::max it reads the
/// position's share, which a kernel of its rank has written. `extra` are the weights of the positions, or
/// under pooling::max the positions of the maxima. `weight_grads` receives the gradients of the weights.
template <class Bag, class Exec, class Rule, class Table, class State, class Named, class Bags, class Grads,
          class Extra, class WeightGrads>
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
  static constexpr bool finds_maxima = pooling::selects && !has_extra;
  static constexpr bool finds_weight_grads = !std::is_same_v<WeightGrads, no_array>;
  using sent = std::conditional_t<divides, compute, value>;

  /// True if this rank needs the rows of its batch, too.
  static constexpr bool reads_rows = finds_maxima || finds_weight_grads;
  static constexpr bool may_read_rows = reads_rows && reads_peers<Exec, Table, device_space>;
  /// True if kernels of some ranks may do it.
  static constexpr bool may_offer =
      routes_by_kernels<Exec> && finds_owners_in_kernels<Table> && reads_rows == may_read_rows;
  /// True if those of this rank may, which depends on the space of its gradients.
  static constexpr bool may_pull = may_offer && (is_host_exec<Exec> || !home::is_host_accessible);
  static constexpr bool may_read_in_place = reads_other_memory<Exec, typename Table::memory_space>;

  const Rule& rule;
  State& state;
  const Bags& bags;
  const Grads& grads;
  const Extra& extra;
  const WeightGrads& weight_grads;
  bool reaches_rows = false;  ///< true if kernels of this rank read the shards of all
  routed_lists lists{};
  bag_lists<compute, home> listed{};
  tensor<sent, home> shares{};  ///< of the items, under pooling::max
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
                      const WeightGrads& more_grads, const call_note& note)
      : base("step_bags", instance, rows, indices, false, note),
        rule(optimizer),
        state(moments),
        bags(offsets),
        grads(pooled),
        extra(more),
        weight_grads(more_grads) {}

  void check() {
    require_sharded_bag_batch<chosen, Exec>(this->verb, call, table, named, bags, grads);
    const std::int64_t positions = routed_positions(named);
    require_a_bag(this->verb, positions, grads);
    require_extra<pooling>(this->verb, extra, positions, grads);
    if constexpr (finds_weight_grads) {
      require_weights(this->verb, weight_grads, positions, gradients_of_weights);
      require_apart(this->verb, call, table, weight_grads);
      require_direct_reach(this->verb, exec, weight_grads);
    }
    require_sharded_step<count_policy, compute>(this->verb, call, rule, table, state);
  }
  /// The gradients of the bags, as their positions get them.
  [[nodiscard]] auto shared() const {
    if constexpr (divides)
      return read_only(make_ref(listed.divided));
    else
      return grads;
  }
  /// The values that owners read.
  [[nodiscard]] auto offered() const {
    if constexpr (pooling::selects)
      return read_only(make_ref(shares));
    else
      return shared();
  }
  /// Lists the bags of the items of a route. `near_bags`: those of the call, or a copy that kernels read.
  template <class NearBags>
  void list_batch(const std::int64_t* place, std::int64_t items, const std::int64_t* row_of,
                  const NearBags& near_bags, const kernels::tables_of_bags& layout = {}) {
    constexpr bool checks = !std::is_same_v<bounds_policy, bounds::unchecked>;
    const auto list = [&](const auto& factors) {
      return list_bags<pooling, compute, home>(exec, place, items, row_of, near_bags, routed_positions(named),
                                               checks, factors, grads, layout);
    };
    if constexpr (weighs)
      listed = list(extra);
    else
      listed = list(no_array{});
    scanned.take_offsets(listed.report);
    call.keep(listed.memory);
  }
  /// Kernels route the positions, and find their bags.
  void route_on_device() {
    const auto rows = static_cast<std::int64_t>(table.rows());
    const auto take = [&](const routed_lists& positions, std::int64_t items, const std::int64_t* row_of) {
      list_batch(positions.place, items, row_of, bags);
      if constexpr (pooling::selects) {
        shares = payload<sent, home>(exec, "shares of maxima", items, this->width());
        if constexpr (has_extra)
          if (scanned.bad_bags == 0)
            share_gradients(exec, positions.place, listed.bags, extra, grads, shares);
      }
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
  /// The part of this rank's batch that owners may read: instead of the position of each item its bag, or
  /// its share.
  template <lane_parts Parts>
  [[nodiscard]] batch_offer own_offer(routed_lists items, const route_groups& route) const {
    if (listed.memory == nullptr) return {};
    items.place = pooling::selects ? listed.numbers : listed.bags;
    // Each item has a share of its own under pooling::max.
    constexpr lane_parts parts = !pooling::selects             ? Parts
                                 : Parts == lane_parts::shared ? lane_parts::rows
                                                               : lane_parts::values;
    return show_batch<parts>(call, exec, this->instance(call.rank()), items, route, offered(),
                             listed.factors);
  }
  /// The findings and offers of a plan whose lists lie on the devices of all ranks.
  void agree_on_bags(const batch_findings& batch) {
    if constexpr (base::is_planned) {
      const auto& plan = named.storage();
      batch_offer offer;
      if constexpr (may_pull) offer = own_offer<lane_parts::shared_values>(plan.lists, plan.routes.batch);
      headers = exchange_offers(call, plan.headers, batch, offer);
      this->findings = headers.findings;
      pulls = agree_to_pull<Exec>(call, headers);
      shard_plan.plan = plan.owned.plan;
      owned = &shard_plan;
    }
  }
  /// The gradients of the rows of this rank's shard, out of the batches of all.
  void pull() {
    const int rank = call.rank();
    const Exec shard_exec = this->instance(rank);
    const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
    const auto shard_rows = static_cast<std::int64_t>(table.rows_of(rank));
    in_place = may_read_in_place && (is_host_exec<Exec> || values_for(rank, headers, 1).on_devices);
    if (in_place)
      found_values =
          find_values<sent>(this->verb, shard_exec, rank, headers, shard_rows, this->width(), owned, weighs);
    else
      pulled = pull_rows<sent, true>(this->verb, shard_exec, rank, headers, this->width(), shard_rows, owned,
                                     weighs);
    if constexpr (weighs)
      if (!in_place) {
        launch_context<Exec> work(shard_exec, this->verb);
        pulled.plan = with_values(work, pulled.plan, nullptr, pulled.factors.data());
      }
  }
  /// Calls work(access, list) for the rows of this rank's batch in the shards of all ranks. It waits.
  template <class Work>
  void read_rows_of_peers(const Work& work) const {
    const peer_rows<std::remove_const_t<Table>> rows(table);
    const fence_on_exception<Exec> reads(exec);
    if constexpr (base::is_planned)
      work(rows, named.storage().batch);
    else
      work(rows, named);
  }
  /// Writes the gradients of the weights, by kernels that read the shards of all ranks.
  void find_weight_grads() const {
    read_rows_of_peers([&](const auto& rows, const auto& list) {
      write_weight_gradients<bounds_policy>(exec, rows, list, bags, shared(), weight_grads);
    });
  }
  /// True if this rank knows of a flaw of its batch, for which all ranks will refuse the step.
  [[nodiscard]] bool has_flaw() const {
    if (scanned.bad_bags != 0) return true;
    if constexpr (base::is_planned)
      return named.storage().routes.findings[static_cast<std::size_t>(call.rank())].out_of_range != 0;
    else
      return routes.batch.report.out_of_range != 0;
  }
  /// Finds the maxima of a batch without flaws, and the shares of the items, by kernels that read the shards
  /// of all ranks.
  void find_shares() {
    using maximum = pooling_type<element, void, float>;
    auto positions =
        payload<std::int64_t, device_space>(exec, "positions of maxima", grads.rows(), this->width());
    auto maxima = payload<maximum, device_space>(exec, "maxima", grads.rows(), this->width());
    const fence_on_exception<Exec> work(exec);
    read_rows_of_peers([&](const auto& rows, const auto& list) {
      pool_bags<path::automatic, pooling, bounds_policy>(exec, rows, list, bags, make_ref(positions),
                                                         make_ref(maxima))
          .join();
    });
    const std::int64_t* place = lists.place;
    if constexpr (base::is_planned) place = named.storage().lists.place;
    share_gradients(exec, place, listed.bags, read_only(make_ref(positions)), grads, shares);
  }
  void step_pulled() {
    const int rank = call.rank();
    const Exec shard_exec = this->instance(rank);
    const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
    using sum = std::conditional_t<weighs, weighted_sum, duplicates::sum>;
    using step_policies = chosen_policies<shard_step_policies<chosen, sum>>;
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
