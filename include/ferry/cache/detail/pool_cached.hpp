// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/cache/detail/cache_use.hpp>
#include <ferry/cache/detail/gather_cached.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// gather_bags from a cached table, after the checks: as gather_bags_on, with the rows at their places.
template <class Pooling, class Bounds, class Exec, class T, class Space, class Named, class Bags,
          class Weights, class Chosen, class Out, class OutSpace>
ticket pool_cached(const Exec& exec, row_cache& cache, const array_ref<T, Space>& table, const Named& named,
                   const Bags& bags, const Weights& weights, const Chosen& chosen,
                   const array_ref<Out, OutSpace>& out) {
  launch_context<Exec> of(exec, "gather_bags");
  const std::string& label = of.label("cached");
  const std::int64_t count = out.rows(), positions = positions_of(named);
  constexpr bool checks = !std::is_same_v<Bounds, bounds::unchecked>;
  bool is_signed = true;
  if constexpr (is_plan<Named>) {
    is_signed = named.storage()->signed_indices;
    of.use(named.storage());
  } else {
    is_signed = std::is_signed_v<std::remove_const_t<typename Named::value_type>>;
  }
  if (out.size() == 0) {
    if constexpr (!is_plan<Named>) look_at_bounds<Bounds>(of, named, table.rows());
    if constexpr (!std::is_same_v<Bags, std::int64_t>)
      launch(exec, of.label("validate"), count,
             kernels::check_bags<offset_type<Bags>>{bags_for_kernels(of, bags, count, positions, checks)});
  } else {
    require_direct_reach("gather_bags", exec, table);
    require_direct_reach("gather_bags", exec, out);
    of.reads_from(table);
    of.writes_to(out);
    [[maybe_unused]] const auto moving = moves<path::direct>(of, table, out, bytes_of_rows(table, positions));
    kernels::place_rule rule{};
    const auto both = virtual_table(table, cache.arrays.front(), rule);
    const auto pool = [&](auto* maxima, std::int64_t stride) {
      const auto list = bags_for_kernels(of, bags, count, positions, checks);
      const auto* factors = weights_for_kernels(of, weights);
      const kernels::listed_rows places{places_of<Bounds>(of, cache, named, rule)};
      const pooling_inputs in{both, places, list, factors, maxima, stride, is_strict<Bounds>(named)};
      launch_pool<Pooling>(exec, label, in, out, nullptr);
    };
    if constexpr (std::is_same_v<Chosen, no_array>) {
      pool(static_cast<void*>(nullptr), 0);
    } else {
      require_direct_reach("gather_bags", exec, chosen);
      of.writes_to(chosen);
      pool(chosen.data, chosen.row_stride());
    }
  }
  return of.finish(table, positions, is_signed);
}

/// Checks as pool_checked, and pools. `extra` is no_array, weights, or the array for positions of maxima.
template <class Bag, class Exec, class Cached, class Indices, class Offsets, class Pooled, class Extra>
ticket pool_cached_checked(const Exec& exec, const Cached& table, const Indices& indices,
                           const Offsets& offsets, Pooled& pooled, const Extra& extra) {
  const char* verb = "gather_bags";
  using pooling = typename Bag::pooling;
  using chosen = typename Bag::chosen;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const cache_use in(table.core(), verb);
  const auto from = read_only(table.ref());
  const auto to = make_ref(pooled);
  using element = std::remove_const_t<typename decltype(from)::value_type>;
  static_assert((std::is_same_v<element, std::byte> ||
                 NumberElement<element>)&&NumberElement<typename decltype(to)::value_type>,
                "ferry: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers.");
  const auto& named = rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  const std::int64_t positions = positions_of(named);
  if constexpr (is_plan<Indices>) {
    require_plan<Exec, chosen>(verb, named, from);
  } else {
    require_rank_one(verb, named);
    require_a_row_to_clamp_to<bounds_policy>(verb, from, positions);
  }
  require_bags(verb, bags, positions, to);
  require_shapes(verb, from, to.rows(), to);
  require_foreign(verb, table.core(), named, bags, extra, to);
  if constexpr (pooling::selects && !std::is_same_v<Extra, no_array>) {
    require_chosen(verb, extra, to);
    if (std::cmp_greater(positions, std::numeric_limits<typename Extra::value_type>::max()))
      throw invalid_argument("ferry::gather_bags: " + extra.describe() + " can't hold the positions of " +
                             std::to_string(positions) + " indices; its elements must be int64");
    return pool_cached<pooling, bounds_policy>(exec, table.core(), from, named, bags, no_array{}, extra, to);
  } else {
    if constexpr (!std::is_same_v<Extra, no_array>) require_weights(verb, extra, positions);
    return pool_cached<pooling, bounds_policy>(exec, table.core(), from, named, bags, extra, no_array{}, to);
  }
}

}  // namespace ferry::detail
