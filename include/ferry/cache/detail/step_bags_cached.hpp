// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/step_on_bags.hpp>
#include <ferry/cache/detail/cache_use.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/cache/detail/step_cached.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// As step_on_bags, for a cached table.
template <class Bag, class Exec, class Rule, class Cached, class State, class Indices, class Offsets,
          class Value, class ValueSpace, class Extra>
ticket step_bags_cached(const Exec& exec, const Rule& rule, Cached& cached, State& state,
                        const Indices& indices, const Offsets& offsets,
                        const array_ref<Value, ValueSpace>& grads, const Extra& extra, const no_array& none) {
  using pooling = typename Bag::pooling;
  const auto& named = rows_named_by(indices);
  if constexpr (pooling::selects) {
    return run_on_table(exec, "step_bags", cached.core(), true, [&] {
      require_foreign("step_bags", cached.core(), named, offsets, grads, extra);
      return step_on_bags<Bag>(exec, rule, cached.ref(), state, named, offsets, grads, extra, none);
    });
  } else {
    const char* verb = rows_of_bags::verb;
    const cache_use in(cached.core(), verb);
    const auto table = cached.ref();
    using chosen = typename Bag::chosen;
    using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
    using sum = sum_of_positions<pooling, Extra>;
    using with_sum = typename with_duplicates<typename Bag::others, sum>::type;
    using compute = step_type<typename decltype(table)::value_type, typename State::value_type, Value>;
    require_foreign(verb, cached.core(), named, offsets, grads, extra);
    const auto bags = bags_named_by(offsets);
    const std::int64_t positions = positions_of(named);
    require_bags(verb, bags, positions, grads);
    if (grads.rows() == 0 && positions != 0)
      throw invalid_argument(std::string("ferry::step_bags: ") + std::to_string(positions) +
                             " indices were given, but " + grads.describe() + " has no bags");
    require_shapes(verb, table, grads.rows(), grads);
    if constexpr (!std::is_same_v<Extra, no_array>) require_weights(verb, extra, positions);
    const auto step_by = [&](const row_plan& plan) {
      const auto made =
          plan_bags<pooling, bounds_policy, compute>(exec, table, plan, bags, extra, none, grads);
      return step_cached<with_sum, rows_of_bags>(exec, cached.core(), rule, table, state,
                                                 rows_named_by(made.plan), made.gradients);
    };
    if constexpr (is_plan<Indices>) {
      require_plan<Exec, chosen>(verb, named, table);
      return step_by(named);
    } else {
      require_rank_one(verb, named);
      require_a_row_to_clamp_to<bounds_policy>(verb, table, positions);
      return step_by(plan_rows_of<bounds_policy>(exec, named, table.rows()));
    }
  }
}

}  // namespace ferry::detail
