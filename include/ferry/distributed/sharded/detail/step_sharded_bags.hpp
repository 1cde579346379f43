// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/sharded/detail/bag_route.hpp>
#include <ferry/distributed/sharded/detail/bag_step_by_kernels.hpp>
#include <ferry/distributed/sharded/detail/bag_weight_gradients.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/gather_together.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/optim/step.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
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

/// The parts of step_bags on a sharded table.
namespace ferry::detail {

/// The gradients of bags divided by the number of their rows, as step_bags divides them. `tables`: of bags of
/// several tables, for kernels of `exec`. Blocks.
template <class Compute, class Payload, class Exec, class Wire, class Bags, class Value, class Space>
tensor<Compute, Payload> divided_gradients(const Exec& exec, const row_route<Wire>& rows, const Bags& list,
                                           const array_ref<Value, Space>& grads,
                                           const kernels::tables_of_bags& tables = {}) {
  static const std::string label = "ferry::step_bags::divide";
  using value = std::remove_const_t<Value>;
  const auto sizes = sizes_of_bags(rows, list);
  auto undivided = payload<value, Payload>(exec, "gradients", grads.rows(), grads.width());
  auto quotients = payload<Compute, Payload>(exec, "divided gradients", grads.rows(), grads.width());
  copy(exec, grads, undivided).join();
  using number = exact_number<Exec, Compute>;
  const typename execution_backend<Exec>::device_guard guard(exec);  // Kokkos leaves its own device current
  const kernels::bag_list<std::int64_t> bags{sizes.data(), 0, list.bags, rows.routed(), false, false, {}};
  launch(exec, label, static_cast<std::int64_t>(quotients.size()),
         kernels::divide_by_sizes<number, Compute, std::int64_t, value>{bags, nullptr, undivided.data(),
                                                                        grads.width(), quotients.data(),
                                                                        fast_divisor(grads.width()), tables});
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

/// The policies of a step of a shard by bags. The owner divides nothing: it does not know their sizes.
template <class Chosen>
using shard_bag_policies = policies<pooling::sum, shard_path_t<Chosen>, bounds::unchecked,
                                    typename Chosen::template get<step_count_category, step_count::global>,
                                    typename Chosen::template get<rounding_category, rounding::nearest>>;

/// step_bags on a sharded table. If kernels can't, each owner gets the bags that name its rows, with the
/// positions that name them, and each such bag's gradient once; under pooling::max it gets the shares of the
/// positions.
template <class Bag, class Exec, class Rule, class Table, class State, class Named, class Bags, class Grads,
          class Extra, class WeightGrads>
struct sharded_bag_step
    : bag_step_by_kernels<Bag, Exec, Rule, Table, State, Named, Bags, Grads, Extra, WeightGrads> {
  using base = bag_step_by_kernels<Bag, Exec, Rule, Table, State, Named, Bags, Grads, Extra, WeightGrads>;
  using base::bags, base::call, base::exec, base::extra, base::grads, base::headers, base::listed,
      base::lists, base::may_pull, base::named, base::pulls, base::reaches_rows, base::routes, base::rule,
      base::scanned, base::shares, base::state, base::table, base::weight_grads;
  using base::base;
  using base::divides, base::finds_maxima, base::finds_weight_grads, base::may_read_rows, base::reads_rows,
      base::weighs;
  using typename base::bounds_policy, typename base::chosen, typename base::compute, typename base::element,
      typename base::home, typename base::nonfinite_policy, typename base::pooling, typename base::sent,
      typename base::wire;
  /// Weights travel with the positions.
  using weight = std::conditional_t<weighs, std::remove_const_t<typename Extra::value_type>, double>;

  std::optional<host_bags<Exec, Bags>> list{};
  routing<wire> bag_routes{};
  moved_values<sent, home> gradients{};
  moved_values<weight, wire> weights{};

  void route() {
    bool by_kernels = shows_batches(call) && kernels_read_batch(exec, named);
    if constexpr (may_read_rows) reaches_rows = by_kernels && reaches_shards(exec, table);
    if constexpr (reads_rows) by_kernels = reaches_rows;
    if constexpr (finds_maxima)
      find_shares_together(by_kernels);
    else if constexpr (may_pull)
      if (by_kernels) this->route_on_device();
    if (listed.memory == nullptr) route_on_host();
    if (scanned.bad_bags != 0) return;
    if constexpr (nonfinite_policy::looks) scanned.take_values(scan_values(exec, this->shared()));
  }
  void agree() {
    if constexpr (base::is_planned) {
      this->findings = named.storage().routes.findings;
      batch_findings batch = this->own_findings();
      batch.bad_bags = scanned.bad_bags;
      batch.offsets = scanned.offsets;
      batch.take_values(scanned);
      if constexpr (base::may_offer)
        if (named.storage().on_devices) return this->agree_on_bags(batch);
      this->exchange_findings(batch);
    } else {
      agree_on_routes();
    }
  }
  [[nodiscard]] bool refuse() {
    if (this->refuse_batches()) return true;
    if constexpr (finds_weight_grads) read_for_weights();
    return this->template refuse_gradients<nonfinite_policy>(state);
  }
  void move() {
    if constexpr (may_pull)
      if (pulls) {
        return this->pull();
      }
    if constexpr (pooling::selects)
      move_shares();
    else
      move_bags();
  }
  void apply() {
    if constexpr (may_pull)
      if (pulls) return this->step_pulled();
    write_jointly(call.first(), call.last(), [&](int r) {
      if constexpr (base::is_planned)
        update(r, this->plan_of(r));
      else
        update(r, this->current_routes().rows_for(r));
    });
    call.agree();  // no rank returns before all have written
  }

 protected:
  void make_list(std::int64_t count) {
    list.emplace(exec, bags, count, routed_positions(named),
                 !std::is_same_v<bounds_policy, bounds::unchecked>);
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
      pulls = agree_to_pull<Exec>(call, headers);
      if (pulls) return;
      if (lists.memory != nullptr) bring_to_host(exec, lists, routes.batch);
    }
    exchange_rows(call, table.label(), routes);
  }
  /// The weights in the order of the route.
  void take_weights() {
    const row_route<wire>& route = this->current_routes().batch;
    weights.batch = tensor<weight, wire>("weights", route.routed());
    gather(exec, extra, route.place, weights.batch, bounds::unchecked{}).join();
  }

 private:
  /// The route by kernels, if those of all ranks read the shards: then the shares of this batch are there,
  /// and the next phase is one that ends reads. One phase.
  void find_shares_together([[maybe_unused]] bool by_kernels) {
    if constexpr (finds_owners_in_kernels<Table>) {
      if (!may_reach_shards(call, table)) return;
      if constexpr (base::is_planned) by_kernels = by_kernels && named.storage().on_devices;
      by_kernels = agree_to_read(call, exec, this->instance(call.rank()), may_pull && by_kernels);
      if constexpr (may_pull)
        if (by_kernels) {
          this->route_on_device();
          if (!this->has_flaw()) this->find_shares();
        }
    }
  }
  void route_on_host() {
    if constexpr (!base::is_planned)
      routes.batch = route_batch<bounds_policy>(this->verb, exec, table, named);
    make_list(grads.rows());
    scanned.take_offsets(list->look_for_step());
    if (scanned.bad_bags != 0) return;
    if constexpr (divides)
      listed.divided =
          divided_gradients<compute, home>(exec, this->current_routes().batch, list->list(), grads);
  }
  /// The rows of the batch, as they come from their owners.
  [[nodiscard]] auto fetch_rows_of_batch() {
    return this->template fetch<home, element>(
        shard_reader<shard_read_path_t<chosen, Exec, typename Table::memory_space>>{}, this->width());
  }
  /// Writes the gradients of the weights before any row is stepped, also over the weights.
  void read_for_weights() {
    if constexpr (weighs)
      if (!pulls) take_weights();
    bool by_peers = false;
    if (may_reach_shards(call, table))
      by_peers = agree_to_read(call, exec, this->instance(call.rank()), reaches_rows);
    if constexpr (may_read_rows)
      if (by_peers) {
        this->find_weight_grads();
        return call.agree();  // the rows have been read
      }
    const auto arrived = fetch_rows_of_batch();
    const auto slots = slots_of(this->current_routes().batch);
    write_weight_gradients<bounds::skip>(exec, plain_rows(make_ref(arrived)), read_only(make_ref(slots)),
                                         bags, this->shared(), weight_grads);
  }
  /// The positions of the maxima, which the caller did not keep.
  [[nodiscard]] tensor<std::int64_t, wire> find_maxima() {
    tensor<std::int64_t, wire> positions("positions of maxima", grads.rows(), grads.width());
    tensor<pooling_type<element, void, float>, wire> maxima("maxima", grads.rows(), grads.width());
    const auto arrived = fetch_rows_of_batch();
    pool_arrived<pooling, bounds_policy>(this->verb, exec, table, named, bags, this->current_routes().batch,
                                         arrived, make_ref(positions), make_ref(maxima))
        .join();
    return positions;
  }
  /// Sends the shares of the positions to the owners of their rows.
  void move_shares() {
    const row_route<wire>& route = this->current_routes().batch;
    gradients.batch = payload<sent, home>(exec, "shares of maxima", route.routed(), this->width());
    if (!list) make_list(grads.rows());
    tensor<std::int64_t, wire> bags_of_items("bags of positions", route.routed());
    for (std::int64_t k = 0; k < route.routed(); ++k)
      bags_of_items.data()[k] = list->list().bag_of(route.place.data()[k]);
    const auto share_by = [&](const auto& maxima) {
      share_gradients(exec, route.place.data(), bags_of_items.data(), maxima, grads, gradients.batch);
    };
    if constexpr (finds_maxima) {
      const auto maxima = find_maxima();
      share_by(make_ref(maxima));
    } else {
      share_by(extra);
    }
    gradients.move(call, exec, this->instance(call.first()), this->current_routes(), table.width());
  }
  /// Sends the bags of this batch to the owners of their rows, and the weights of the positions.
  void move_bags() {
    if (!list) make_list(grads.rows());
    const row_route<wire>& route = this->current_routes().batch;
    bag_routes = complete_routing(call, table.label(), route_bags(route, list->list()));
    const Exec shard_exec = this->instance(call.first());
    gradients.batch = values_by_route<home>(exec, bag_routes.batch, this->shared());
    gradients.move(call, exec, shard_exec, bag_routes, table.width());
    if constexpr (weighs) {
      if constexpr (!finds_weight_grads) take_weights();
      weights.move(call, exec, shard_exec, this->current_routes());
    }
  }
  template <class Rows>
  void update(int rank, const Rows& rows) {
    const auto& value_routes = pooling::selects ? this->current_routes() : bag_routes;
    tensor<sent, home> copied;
    const auto values = rows_near(call.is_whole() ? exec : this->instance(rank), this->instance(rank),
                                  gradients.rows_for(value_routes, rank), copied);
    const auto shard_exec = this->instance(rank);
    const auto rule_there = rule_of_shard(rule, table, state, rank);
    auto& shard = table.shard(rank);
    auto& moments = state.shard(rank);
    const shard_bag_policies<chosen> shard_policies{};
    if constexpr (pooling::selects)
      step(shard_exec, rule_there, shard, moments, rows, values,
           shard_step_policies<chosen, duplicates::sum>{})
          .join();
    else if constexpr (weighs)
      step_bags(shard_exec, rule_there, shard, moments, rows, offsets_of(bag_routes.rows_for(rank)), values,
                weights.rows_for(this->current_routes(), rank), shard_policies)
          .join();
    else
      step_bags(shard_exec, rule_there, shard, moments, rows, offsets_of(bag_routes.rows_for(rank)), values,
                shard_policies)
          .join();
  }
};

}  // namespace ferry::detail
