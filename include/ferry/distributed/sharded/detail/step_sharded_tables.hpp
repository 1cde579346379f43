// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/route_tables.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_bags.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/pooling.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// packed[k] = the part of the gradients of bag bags[k] that its table has, and zeros after it. One thread
/// per element, row-major.
template <class Value>
struct pack_parts {
  const std::int64_t* bags;
  tables_of_bags tables;  ///< one more column follows: the end
  const Value* grads;
  std::int64_t stride;
  Value* packed;
  detail::fast_divisor width;

  static std::int64_t bytes_each() { return 2 * sizeof(Value); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = width.quotient(i);
    const std::int64_t column = i - item * width.divisor();
    const std::int64_t bag = bags[item], table = tables.batch.quotient(bag);
    const std::int64_t first = tables.first_column[table];
    packed[i] = column < tables.first_column[table + 1] - first
                    ? grads[tables.row_of(bag) * stride + first + column]
                    : convert<Value>(0.0f);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The states of several sharded tables.
template <class States>
struct states_of_tables {
  using value_type = typename States::value_type::value_type;
  using state_type = typename States::value_type;

  States& states;

  [[nodiscard]] auto begin() const { return std::ranges::begin(states); }
  [[nodiscard]] auto end() const { return std::ranges::end(states); }
};

/// step_bags on several sharded tables, as on one with the rows of all: the ranks meet as often as for one.
template <class Bag, class Exec, class Rule, class Table, class State, class Named, class Bags, class Grads,
          class Extra>
struct sharded_tables_step
    : sharded_bag_step<Bag, Exec, Rule, joined_tables<Table>, State, Named, Bags, Grads, Extra, no_array> {
  using base =
      sharded_bag_step<Bag, Exec, Rule, joined_tables<Table>, State, Named, Bags, Grads, Extra, no_array>;
  using base::bag_routes, base::bags, base::call, base::exec, base::extra, base::found_values,
      base::gradients, base::grads, base::headers, base::list, base::listed, base::lists, base::may_pull,
      base::named, base::pulls, base::routes, base::rule, base::scanned, base::state, base::table, base::verb,
      base::weights;
  using base::base;
  using base::divides, base::weighs;
  using typename base::bounds_policy, typename base::chosen, typename base::compute, typename base::element,
      typename base::home, typename base::nonfinite_policy, typename base::pooling, typename base::sent,
      typename base::wire;
  using count_policy = typename base::count_policy;
  using space = typename Table::memory_space;

  void check() {
    const std::int64_t positions = named.rows();
    require_rank_one(verb, named);
    require_joined(verb, call, table, grads);
    const auto& parts = table.parts();
    for (std::size_t t = 0; t < parts.size(); ++t)
      for (std::size_t earlier = 0; earlier < t; ++earlier)
        if (parts[earlier] == parts[t])
          throw invalid_argument(joined("ferry::", verb, ": tables ", earlier, " and ", t,
                                        " of for_each_table are one, ", parts[t]->describe()));
    require_bags(verb, bags, positions, grads, tables());
    require_a_bag(verb, positions, grads);
    require_extra<pooling>(verb, extra, positions, grads);
    require_states(verb, parts.size(), static_cast<std::size_t>(std::ranges::distance(state.states)));
    auto part = parts.begin();
    for (auto& moments : state) {
      Table& stepped = **part++;
      require_sharded_step<count_policy, compute>(verb, call, rule, stepped, moments);
      for (int r = call.first(); r < call.last(); ++r) {
        require_direct_reach(verb, this->instance(r), make_ref(stepped.shard(r)));
        for (int f = 0; f < moments.shard(r).fields(); ++f)
          require_direct_reach(verb, this->instance(r), moments.shard(r).field_ref(f));
      }
    }
  }
  void route() {
    scanned.bags = grads.rows();
    launch_context<Exec> work(exec, verb);
    table.bring(work);
    const kernels::tables_of_bags layout{table.near_columns(), tables(), fast_divisor(grads.rows())};
    bool is_listed = false;
    if constexpr (routes_by_kernels<Exec> && finds_owners_in_kernels<joined_tables<Table>>)
      if (kernels_read(exec, named)) is_listed = route_on_device(work, layout);
    if (!is_listed) {
      make_bags();
      if (routes.batch.begin.empty())
        routes.batch = route_tables_on_host<bounds_policy>(exec, table, named, list->list(), grads.rows());
      scanned.take_offsets(list->look_for_step());
      if constexpr (divides)
        if (scanned.bad_bags == 0)
          listed.divided = divided_gradients<compute, home>(exec, routes.batch, list->list(), grads, layout);
    }
    work.finish().drop();
    if (scanned.bad_bags != 0) return;
    if constexpr (nonfinite_policy::looks) scanned.take_values(scan_values(exec, this->shared()));
  }
  void move() {
    if constexpr (may_pull)
      if (pulls) return pull();
    if (!list) make_bags();
    const row_route<wire>& route = routes.batch;
    bag_routes = complete_routing(call, table.label(), route_bags(route, list->list()));
    const Exec shard_exec = this->instance(call.first());
    pack_gradients(this->shared());
    gradients.move(call, exec, shard_exec, bag_routes, table.widest());
    if constexpr (weighs) {
      this->take_weights();
      weights.move(call, exec, shard_exec, routes);
    }
  }
  void apply() {
    if constexpr (may_pull)
      if (pulls) {
        const int rank = call.rank();
        const Exec shard_exec = this->instance(rank);
        const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
        step_shards(shard_exec, rank, found_values.plan, found_values.values, table.first_column());
        call.agree();  // no rank returns before all have written
        return;
      }
    write_jointly(call.first(), call.last(), [&](int r) { step_arrived(r); });
    call.agree();  // no rank returns before all have written
  }

 private:
  [[nodiscard]] std::int64_t tables() const { return static_cast<std::int64_t>(table.parts().size()); }
  void make_bags() { this->make_list(grads.rows() * tables()); }
  /// Kernels route the positions. True if they have listed the bags, too, for owners that read them.
  bool route_on_device(launch_context<Exec>& work, const kernels::tables_of_bags& layout) {
    const auto near_bags = bags_near(work, bags);
    const auto rows = route_tables<bounds_policy>(work, table, named, near_bags, lists, routes.batch, grads);
    call.keep(rows.memory);
    call.keep(lists.memory);
    if constexpr (may_pull)
      if (shows_batches(call)) {
        const std::int64_t* const row_of = std::is_same_v<bounds_policy, bounds::skip> ? rows.data : nullptr;
        this->list_batch(lists.place, routes.batch.routed(), row_of, near_bags, layout);
        return true;
      }
    bring_to_host(exec, lists, routes.batch);
    lists = {};
    return false;
  }
  /// Finds the gradients of the rows of this rank's shards in the batches of all.
  void pull() {
    const int rank = call.rank();
    const Exec shard_exec = this->instance(rank);
    const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
    found_values = find_values<sent>(verb, shard_exec, rank, headers, table.rows_of(rank), this->width(),
                                     nullptr, weighs);
  }
  /// The gradients of the bags for their owners: of each bag the columns of its table.
  template <class Shared>
  void pack_gradients(const Shared& shared) {
    const row_route<wire>& route = bag_routes.batch;
    gradients.batch = payload<sent, home>(exec, "gradients", route.routed(), table.widest());
    if (gradients.batch.size() == 0) return;
    launch_context<Exec> work(exec, verb);
    table.bring(work);
    const std::string& label = work.label("tables", "pack");
    const auto near_grads = values_for_kernels(work, label, shared);
    launch(exec, label, static_cast<std::int64_t>(gradients.batch.size()),
           kernels::pack_parts<sent>{indices_for_kernels(work, read_only(make_ref(route.place))),
                                     {table.near_columns(), tables(), fast_divisor(grads.rows())},
                                     near_grads.data,
                                     near_grads.row_stride(),
                                     gradients.batch.data(),
                                     fast_divisor(table.widest())});
    execution_backend<Exec>::fence(exec, label);
    work.finish().drop();
  }
  /// The steps of a rank's shards, with rows and bags that have come.
  void step_arrived(int rank) {
    const Exec shard_exec = this->instance(rank);
    tensor<sent, home> copied;
    const auto values = rows_near(call.is_whole() ? exec : shard_exec, shard_exec,
                                  gradients.rows_for(bag_routes, rank), copied);
    const auto rows = routes.rows_for(rank);
    const auto offsets = offsets_of(bag_routes.rows_for(rank));
    const row_plan plan = make_plan(shard_exec, rows, table.rows_of(rank), bounds::unchecked{});
    const auto shard = make_ref(table.parts().front()->shard(rank));
    const auto step_with = [&](const auto& factors) {
      const auto bags_of_rank = plan_bags<ferry::pooling::sum, bounds::unchecked, compute>(
          shard_exec, plain_rows(shard), plan, bags_named_by(offsets), factors, no_array{},
          read_only(make_ref(values)));
      step_shards(shard_exec, rank, bags_of_rank.plan, bags_of_rank.gradients,
                  std::vector<std::int64_t>(table.parts().size(), 0));
    };
    if constexpr (weighs) {
      const auto factors = weights.rows_for(routes, rank);
      step_with(read_only(make_ref(factors)));
    } else {
      step_with(no_array{});
    }
  }
  /// The steps of a rank's shards, by a plan of their rows, whose positions share the rows of `values`.
  template <class Value, class ValueSpace>
  void step_shards(const Exec& shard_exec, int rank, const row_plan& plan,
                   const array_ref<Value, ValueSpace>& values,
                   const std::vector<std::int64_t>& first_column) {
    using sum = std::conditional_t<weighs, weighted_sum, duplicates::sum>;
    using state_type = typename State::state_type::shard_type;
    using rule_type = decltype(rule_of_shard(rule, *table.parts().front(), *state.begin(), rank));
    // Gradients have been scanned before.
    using call_type = step_call<
        step_policies<count_policy, typename chosen::template get<rounding_category, rounding::nearest>,
                      nonfinite::keep>,
        rule_type, state_type, array_ref<element, space>>;
    call_type::template require_types<Exec, Value, sum>();
    std::vector<rule_type> rules;
    std::vector<array_ref<element, space>> shards;
    rules.reserve(table.parts().size());
    shards.reserve(table.parts().size());
    table_steps<call_type> steps(table.parts().size());
    auto part = table.parts().begin();
    for (auto& moments : state) {
      rules.push_back(rule_of_shard(rule, **part, moments, rank));
      shards.push_back(make_ref((*part++)->shard(rank)));
      steps.add(rules.back(), shards.back(), moments.shard(rank), std::type_identity<Value>{});
    }
    steps.take_counters(shard_exec);
    launch_context<Exec> work(shard_exec, verb);
    work.use(plan.storage());
    if (plan.positions() != 0) {
      std::vector<std::int64_t> first_row = table.first_local(rank);
      const std::int64_t* const near_rows = records_for_kernels(work, std::vector<std::int64_t>(first_row));
      launch_steps<sum, false>(work, work.label("tables"), steps, shards, plan,
                               table_layout{std::move(first_row), first_column, {near_rows, tables()}},
                               values);
    }
    ticket launched = work.finish();
    steps.template count<Value>();
    launched.join();
  }
};

}  // namespace ferry::detail
