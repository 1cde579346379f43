// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_bags.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/step.hpp>
#include <ferry/error.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {

/// The policies of a step of a shard. The owner divides nothing: it does not know the sizes of the bags.
template <class Pooling, class Chosen>
using shard_bag_policies =
    policies<std::conditional_t<Pooling::selects, Pooling, pooling::sum>, shard_path_t<Chosen>,
             bounds::unchecked, typename Chosen::template get<step_count_category, step_count::global>,
             typename Chosen::template get<rounding_category, rounding::nearest>>;

/// Checks and runs; `extra` is no_array, the weights of the positions, or the positions of the maxima.
template <class... Policies, class Exec, class Rule, class Table, class State, class Indices, class Offsets,
          class Grads, class Extra>
ticket step_sharded_bags(const Exec& exec, const Rule& rule, Table& table, State& state,
                         const Indices& indices, const Offsets& offsets, const Grads& pooled_grads,
                         const Extra& extra) {
  const char* verb = "step_bags";
  using wire = wire_space<Exec>;
  using bag = bag_policies<Policies...>;
  using pooling = typename bag::pooling;
  using chosen = typename bag::chosen;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  require_sharded_bags<Exec, Table, Indices, Offsets, Grads, chosen, true>();
  static_assert(
      !chosen::template names<duplicates_category>,
      "ferry: step_bags adds the gradients of all positions of a row, as the backward pass of bags does, so it takes no duplicates policy.");
  const auto grads = read_only(make_ref(pooled_grads));
  using value = std::remove_const_t<typename decltype(grads)::value_type>;
  using home = payload_space<Exec, typename Table::memory_space, typename decltype(grads)::memory_space>;
  using compute = step_type<typename Table::value_type, typename State::value_type, value>;
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  constexpr bool has_extra = !std::is_same_v<Extra, no_array>;
  const auto& named = sharded_rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  auto note = note_of<chosen, pooling, value, Rule, typename Extra::value_type>(verb, table);
  collective call(table.comm(), add_plan(add_state(add_options(note, rule), state), indices));
  return call.guarded([&]() -> ticket {
    require_sharded_bag_batch<chosen, Exec>(verb, call, table, named, bags, grads);
    const std::int64_t positions = routed_positions(named);
    if (grads.rows() == 0 && positions != 0)
      throw invalid_argument("ferry::step_bags: " + std::to_string(positions) + " indices were given, but " +
                             grads.describe() + " has no bags");
    if constexpr (has_extra && pooling::selects) require_chosen(verb, extra, grads);
    if constexpr (has_extra && !pooling::selects) require_weights(verb, extra, positions);
    require_sharded_step<count_policy, compute>(verb, call, rule, table, state);

    // This rank's own part: where its rows lie, its offsets, its gradients.
    row_route<wire> routed;
    if constexpr (!is_sharded_plan<Indices>) routed = route_rows<bounds_policy>(exec, table, named);
    const row_route<wire>& own = [&]() -> const row_route<wire>& {
      if constexpr (is_sharded_plan<Indices>)
        return named.storage().routes.own;
      else
        return routed;
    }();
    host_bags<Exec, std::remove_const_t<decltype(bags)>> here(
        exec, bags, grads.rows(), positions, !std::is_same_v<bounds_policy, bounds::unchecked>);
    const index_report offsets_found = here.look_for_step();
    batch_findings scanned;
    scanned.take_offsets(offsets_found);
    constexpr bool divides = pooling::divides;
    tensor<compute, home> divided;
    const auto shared = [&] {
      if constexpr (divides)
        return read_only(make_ref(divided));
      else
        return grads;
    };
    if (scanned.bad_bags == 0) {
      if constexpr (divides) divided = divided_gradients<compute, home>(exec, own, here.list(), grads);
      if constexpr (nonfinite_policy::looks) {
        const batch_findings values = scan_values(exec, shared());
        scanned.nonfinite = values.nonfinite;
        scanned.first_value = values.first_value;
      }
    }

    // Those of all ranks.
    routing<wire> made;
    std::vector<batch_findings> findings;
    if constexpr (is_sharded_plan<Indices>) {
      const routing<wire>& by = named.storage().routes;
      batch_findings mine = by.findings[by.is_whole ? 0 : static_cast<std::size_t>(call.rank())];
      mine.take_offsets(offsets_found);
      mine.nonfinite = scanned.nonfinite;
      mine.first_value = scanned.first_value;
      if (call.is_whole())
        findings.assign(1, mine);
      else
        findings = call.all_gather(std::span<const batch_findings>(&mine, 1));
    } else {
      made = complete_routing(call, table, std::move(routed), scanned);
      findings = made.findings;
    }
    const routing<wire>& by = [&]() -> const routing<wire>& {
      if constexpr (is_sharded_plan<Indices>)
        return named.storage().routes;
      else
        return made;
    }();
    const all_findings found(verb, whole_ref(table).note(), findings, call.is_whole());
    if (found.bad_bags() != 0 || found.out_of_range() != 0) {
      call.close();
      return ticket_of_error(found.bad_bags() != 0 ? found.offsets_error() : found.bounds_error());
    }
    if constexpr (nonfinite_policy::looks)
      if (found.nonfinite() != 0) {
        call.close();
        if constexpr (nonfinite_policy::reports) {
          return ticket_of_error(found.nonfinite_error(static_cast<std::int64_t>(table.width())));
        } else {
          for (int r = call.first(); r < call.last(); ++r) ++state.shard(r).clock()->skipped;
          return {};
        }
      }

    const auto apply = [&](int rank, const auto& rows, const auto& its_offsets, const auto& its_grads,
                           const auto&... more) {
      auto& shard = table.shard(rank);
      auto& its_state = state.shard(rank);
      step_bags(shard_instance(table.comm(), rank, exec),
                rule_for_shard(rule, its_state.clock()->rows, static_cast<std::int64_t>(shard.rows())), shard,
                its_state, rows, its_offsets, its_grads, more..., shard_bag_policies<pooling, chosen>{})
          .join();
    };
    if constexpr (pooling::selects && !has_extra) {
      tensor<std::int64_t, wire> at("positions of maxima", grads.rows(), grads.width());
      tensor<pooling_type<typename Table::value_type, void, float>, wire> maxima("maxima", grads.rows(),
                                                                                 grads.width());
      const auto arrived = fetch_rows<home, typename Table::value_type>(
          call, exec, table, by, [&](int rank, const auto& rows, const auto& into) {
            gather(shard_instance(table.comm(), rank, exec), table.shard(rank), rows, into,
                   shard_read_path_t<chosen, Exec, typename Table::memory_space>{}, bounds::unchecked{})
                .join();
          });
      pool_arrived<pooling, bounds_policy>(verb, exec, table, named, bags, by.own, arrived, no_array{},
                                           make_ref(at), make_ref(maxima))
          .join();
      step_bags_by_routes<pooling>(call, exec, table, named, by, here.list(), shared(),
                                   read_only(make_ref(at)), apply);
    } else {
      step_bags_by_routes<pooling>(call, exec, table, named, by, here.list(), shared(), extra, apply);
    }
    call.close();
    return {};
  });
}

}  // namespace detail

/// The backward pass of gather_bags and one optimizer step on the rows that the bags of all ranks name, as if
/// their batches were one, by rank. Arguments, policies and bits are those of step_bags on an ordinary table,
/// but for the gradients of weights, which it does not have; indices may also be a sharded_plan, or a
/// row_plan for tables of as many rows. Each owner gets the gradient of a bag once, however many of its rows
/// it has.
///
/// Collective, see sharded_table; a rank without bags passes empty arrays, of the same element types, and
/// counts the step. Blocks until all ranks have written. ticket::wait() throws out_of_range on all ranks
/// where one has a bad index or bad offsets, naming the rank, and invalid_argument on all under
/// nonfinite::reject; nothing is then written anywhere, and the step does not count. Throws invalid_argument
/// for shapes or options that do not fit, and peer_error where that happened to another rank.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Offsets, class Grads, class... Policies>
  requires(!detail::AnArray<Policies> && ...)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Offsets& offsets,
    const Grads& pooled_grads, Policies...) {
  detail::require_step_rule<Rule, StateRule>();
  return detail::step_sharded_bags<Policies...>(exec, rule, table, state, indices, offsets, pooled_grads,
                                                detail::no_array{});
}

/// As above, with the weights of the positions, or under pooling::max the positions of the maxima, as
/// gather_bags wrote them.
template <class Exec, class Rule, class T, class Space, class Spread, class StateRule, class StateType,
          class StateSpace, class Indices, class Offsets, class Grads, class Extra, class... Policies>
  requires(detail::AnArray<Extra> && (!detail::AnArray<Policies> && ...))
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, sharded_table<T, Space, Spread>& table,
    sharded_state<StateRule, StateType, StateSpace>& state, const Indices& indices, const Offsets& offsets,
    const Grads& pooled_grads, const Extra& extra, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_step_rule<Rule, StateRule>();
  detail::require_step_extra<Exec, typename bag::pooling, Extra>();
  return detail::step_sharded_bags<Policies...>(exec, rule, table, state, indices, offsets, pooled_grads,
                                                detail::read_only(make_ref(extra)));
}

}  // namespace ferry
