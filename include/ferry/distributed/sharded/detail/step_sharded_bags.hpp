// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/sharded/detail/bag_route.hpp>
#include <ferry/distributed/sharded/detail/bag_step_by_kernels.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The parts of step_bags on a sharded table. Each owner gets the bags that name its rows, with the positions
/// that name them, and each such bag's gradient once.
namespace ferry::detail {

/// The gradients of bags divided by the number of their rows, as step_bags divides them. Blocks.
template <class Compute, class Payload, class Exec, class Wire, class Bags, class Value, class Space>
tensor<Compute, Payload> divided_gradients(const Exec& exec, const row_route<Wire>& rows, const Bags& list,
                                           const array_ref<Value, Space>& grads) {
  static const std::string label = "ferry::step_bags::divide";
  using value = std::remove_const_t<Value>;
  const auto sizes = sizes_of_bags(rows, list);
  auto undivided = payload<value, Payload>(exec, "gradients", grads.rows(), grads.width());
  auto quotients = payload<Compute, Payload>(exec, "divided gradients", grads.rows(), grads.width());
  copy(exec, grads, undivided).join();
  using number = pooling_number<Exec, Compute>;
  const typename execution_backend<Exec>::device_guard on(exec);  // Kokkos leaves its own device current
  const kernels::bag_list<std::int64_t> bags{sizes.data(), 0, list.bags, rows.routed(), false, false, {}};
  launch(exec, label, static_cast<std::int64_t>(quotients.size()),
         kernels::divide_by_sizes<number, Compute, std::int64_t, value>{
             bags, nullptr, undivided.data(), grads.width(), quotients.data(), fast_divisor(grads.width())});
  execution_backend<Exec>::fence(exec, label);
  return quotients;
}

/// The offsets of the bags that an owner got.
template <class Wire>
std::vector<std::int64_t> offsets_of(const tensor_slice<const std::int64_t, Wire>& sizes) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t b = 0; b < sizes.rows(); ++b) offsets.push_back(offsets.back() + sizes.data()[b]);
  return offsets;
}

/// The policies of a step of a shard. The owner divides nothing: it does not know the sizes of the bags.
template <class Pooling, class Chosen>
using shard_bag_policies =
    policies<std::conditional_t<Pooling::selects, Pooling, pooling::sum>, shard_path_t<Chosen>,
             bounds::unchecked, typename Chosen::template get<step_count_category, step_count::global>,
             typename Chosen::template get<rounding_category, rounding::nearest>>;

/// step_bags on a sharded table. If kernels can't, each owner gets the bags that name its rows, with the
/// positions that name them, and each such bag's gradient once.
template <class Bag, class Exec, class Rule, class Table, class State, class Named, class Bags, class Grads,
          class Extra>
struct sharded_bag_step : bag_step_by_kernels<Bag, Exec, Rule, Table, State, Named, Bags, Grads, Extra> {
  using base = bag_step_by_kernels<Bag, Exec, Rule, Table, State, Named, Bags, Grads, Extra>;
  using base::bags, base::call, base::exec, base::extra, base::grads, base::headers, base::listed,
      base::lists, base::may_pull, base::named, base::pulls, base::routes, base::rule, base::scanned,
      base::state, base::table;
  using base::base;
  using base::divides, base::has_extra, base::weighs;
  using typename base::bounds_policy, typename base::chosen, typename base::compute, typename base::element,
      typename base::extra_value, typename base::home, typename base::nonfinite_policy,
      typename base::pooling, typename base::sent, typename base::wire;

  std::optional<host_bags<Exec, Bags>> list{};
  routing<wire> bag_routes{};
  moved_values<sent, home> gradients{};
  moved_values<extra_value, wire> extras{};

  void route() {
    if constexpr (may_pull)
      if (shows_batches(call) && kernels_read_batch(exec, named)) this->route_on_device();
    if (listed.memory == nullptr) route_on_host();
    if (scanned.bad_bags != 0) return;
    if constexpr (nonfinite_policy::looks) scanned.take_values(scan_values(exec, this->shared()));
  }
  void agree() {
    if constexpr (base::is_planned) {
      this->findings = named.storage().routes.findings;
      if constexpr (base::may_offer)
        if (named.storage().on_devices) this->agree_on_bags();
      batch_findings batch = this->own_findings();
      batch.bad_bags = scanned.bad_bags;
      batch.first_offset = scanned.first_offset;
      batch.first_offset_number = scanned.first_offset_number;
      batch.unsigned_offsets = scanned.unsigned_offsets;
      batch.take_values(scanned);
      this->exchange_findings(batch);
    } else {
      agree_on_routes();
    }
  }
  [[nodiscard]] bool refuse() {
    return this->refuse_batches() || this->template refuse_gradients<nonfinite_policy>(state);
  }
  void move() {
    if constexpr (may_pull)
      if (pulls) return this->pull();
    if (!list) make_list();
    if constexpr (pooling::selects && !has_extra) {
      const auto maxima = find_maxima();
      move_bags(read_only(make_ref(maxima)));
    } else {
      move_bags(extra);
    }
  }
  void apply() {
    if constexpr (may_pull)
      if (pulls) return this->step_pulled();
    for (int r = call.first(); r < call.last(); ++r) {
      if constexpr (base::is_planned)
        update(r, this->plan_of(r));
      else
        update(r, this->current_routes().rows_for(r));
    }
    call.agree();  // no rank returns before all have written
  }

 private:
  void make_list() {
    list.emplace(exec, bags, grads.rows(), routed_positions(named),
                 !std::is_same_v<bounds_policy, bounds::unchecked>);
  }
  void route_on_host() {
    if constexpr (!base::is_planned)
      routes.batch = route_batch<bounds_policy>(this->verb, exec, table, named);
    make_list();
    scanned.take_offsets(list->look_for_step());
    if (scanned.bad_bags != 0) return;
    if constexpr (divides)
      listed.divided =
          divided_gradients<compute, home>(exec, this->current_routes().batch, list->list(), grads);
  }
  void agree_on_routes() {
    batch_offer offer;
    if constexpr (may_pull)
      if (lists.memory != nullptr) offer = this->template own_offer<lane_parts::shared>(lists, routes.batch);
    headers = exchange_headers(call, routes.batch, scanned, offer);
    take_headers(routes, call.is_whole(), headers);
    this->findings = headers.findings;
    if (call.is_whole()) return;
    if constexpr (may_pull) {
      pulls = reach_batches<Exec>(call, headers);
      if (pulls) return;
      if (lists.memory != nullptr) bring_to_host(exec, lists, routes.batch);
    }
    exchange_rows(call, table.label(), routes);
  }
  /// The positions of the maxima, which the caller did not keep.
  [[nodiscard]] tensor<std::int64_t, wire> find_maxima() {
    tensor<std::int64_t, wire> positions("positions of maxima", grads.rows(), grads.width());
    tensor<pooling_type<element, void, float>, wire> maxima("maxima", grads.rows(), grads.width());
    const auto arrived = this->template fetch<home, element>(
        shard_reader<shard_read_path_t<chosen, Exec, typename Table::memory_space>>{}, this->width());
    pool_arrived<pooling, bounds_policy>(this->verb, exec, table, named, bags, this->current_routes().batch,
                                         arrived, no_array{}, make_ref(positions), make_ref(maxima))
        .join();
    return positions;
  }
  /// Sends the bags of this batch to the owners of their rows.
  template <class Array>
  void move_bags(const Array& more) {
    const row_route<wire>& route = this->current_routes().batch;
    bag_routes = complete_routing(call, table.label(), route_bags(route, list->list()));
    const Exec shard_exec = this->instance(call.first());
    gradients.batch = values_by_route<home>(exec, bag_routes.batch, this->shared());
    gradients.move(call, exec, shard_exec, bag_routes, table.width());
    if constexpr (weighs) {
      extras.batch = tensor<extra_value, wire>("weights", route.routed());
      gather(exec, more, route.place, extras.batch, bounds::unchecked{}).join();
      extras.move(call, exec, shard_exec, this->current_routes());
    } else if constexpr (pooling::selects) {
      extras.batch =
          tensor<std::int64_t, wire>("positions of maxima", bag_routes.batch.routed(), table.width());
      gather(exec, more, bag_routes.batch.place, extras.batch, bounds::unchecked{}).join();
      number_for_owners(route, bag_routes.batch, extras.batch);
      extras.move(call, exec, shard_exec, bag_routes, table.width());
      if (!call.is_whole())  // each rank numbered its positions from 0
        for (std::size_t r = 0; r + 1 < bag_routes.in_begin.size(); ++r)
          for (std::int64_t i = bag_routes.in_begin[r] * this->width();
               i < bag_routes.in_begin[r + 1] * this->width(); ++i)
            if (extras.in.data()[i] >= 0) extras.in.data()[i] += this->current_routes().in_begin[r];
    }
  }
  template <class Rows>
  void update(int rank, const Rows& rows) {
    const auto offsets = offsets_of(bag_routes.rows_for(rank));
    tensor<sent, home> copied;
    const auto of_bags = rows_near(call.is_whole() ? exec : this->instance(rank), this->instance(rank),
                                   gradients.rows_for(bag_routes, rank), copied);
    const shard_bag_policies<pooling, chosen> shard_policies{};
    const auto shard_exec = this->instance(rank);
    const auto rule_there = rule_of_shard(rule, table, state, rank);
    auto& shard = table.shard(rank);
    auto& moments = state.shard(rank);
    if constexpr (weighs)
      step_bags(shard_exec, rule_there, shard, moments, rows, offsets, of_bags,
                extras.rows_for(this->current_routes(), rank), shard_policies)
          .join();
    else if constexpr (pooling::selects)
      step_bags(shard_exec, rule_there, shard, moments, rows, offsets, of_bags,
                extras.rows_for(bag_routes, rank), shard_policies)
          .join();
    else
      step_bags(shard_exec, rule_there, shard, moments, rows, offsets, of_bags, shard_policies).join();
  }
};

}  // namespace ferry::detail
