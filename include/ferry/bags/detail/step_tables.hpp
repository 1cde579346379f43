// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/sort_indices.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The path of step_bags on several tables, from its arguments to the kernels: one plan of the rows of all
/// tables, then one launch on all of them.
namespace ferry::detail {

/// Checks the types of step_bags on several tables, except the kind of their states. T: the elements of
/// the tables, const if they may not be written.
template <class Exec, class Rule, class T, class Space, class States, class Indices, class Offsets,
          class Grads, class Bag>
consteval void require_list_step() {
  using chosen = typename Bag::chosen;
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  static_assert(!std::is_const_v<T>,
                "ferry: step_bags writes to the tables of for_each_table, so none of them may be const.");
  static_assert(
      std::is_lvalue_reference_v<States> && !std::is_const_v<std::remove_reference_t<States>>,
      "ferry: step_bags writes to the states of the tables of for_each_table, so their range must be a variable that is not const.");
  static_assert(
      !is_plan<Indices>,
      "ferry: a plan is for tables of one number of rows; give step_bags on several tables the indices.");
  static_assert(
      !Bag::pooling::selects,
      "ferry: step_bags on several tables takes pooling::sum and pooling::mean; under pooling::max call it once for each table.");
  static_assert(
      path_policy::chosen_at_run_time || in_batch_order<path_policy>,
      "ferry: step_bags on several tables is one launch of the execution space, so it takes path::direct only.");
  static_assert(
      !chosen::template names<duplicates_category>,
      "ferry: step_bags adds the gradients of all positions of a row, as the backward pass of bags does, so it takes no duplicates policy.");
  using state_type = std::remove_cv_t<typename std::remove_reference_t<States>::value_type>;
  static_assert(
      !std::is_const_v<std::remove_reference_t<decltype(*std::ranges::begin(std::declval<States&>()))>>,
      "ferry: step_bags writes to the states of the tables of for_each_table, so none of them may be const.");
  require_step_rule<Rule, typename state_type::rule_type>();
  require_row_verb<Exec, tensor<std::remove_const_t<T>, Space>, Indices, Grads, chosen, true, true>();
  require_offsets<Exec, Offsets>();
}

/// Checks the types of step_bags on several tables that are not sharded.
template <class Exec, class Rule, class T, class Space, class States, class Indices, class Offsets,
          class Grads, class Bag>
consteval void require_table_step() {
  require_list_step<Exec, Rule, T, Space, States, Indices, Offsets, Grads, Bag>();
  static_assert(
      is_state_of_table<std::remove_cv_t<typename std::remove_reference_t<States>::value_type>>,
      "ferry: the tables of for_each_table are not sharded, so their states must not be those of sharded tables; call make_state with each table.");
}

/// The plan of bags of several tables, which numbers their rows one after the other. `lacks_rows`: true if a
/// table does.
template <class Bounds, class Exec, class Index, class IndexSpace, class Bags>
row_plan plan_tables(const Exec& exec, const array_ref<Index, IndexSpace>& indices, const Bags& bags,
                     std::int64_t batch, const std::vector<std::int64_t>& first_row,
                     const kernels::table_ranges& ranges, bool lacks_rows) {
  using plain = std::remove_const_t<Index>;
  constexpr bool clamps = std::is_same_v<Bounds, bounds::clamp>;
  const std::int64_t n = indices.rows();
  const auto enter = [&](launch_context<Exec>& call, void* copy) -> const void* {
    return n == 0 ? nullptr : indices_for_kernels(call, indices, static_cast<plain*>(copy));
  };
  const auto resolve = [&](launch_context<Exec>& call, const void* source, const report_writer& report,
                           std::int64_t* row_of) {
    const offset_type<Bags>* offsets = nullptr;
    if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = bags.data;
    using rows = kernels::index_rows<plain, Bounds>;
    launch(exec, call.label("tables"), n,
           kernels::resolve_in_tables<plain, Bounds, offset_type<Bags>, clamps>{
               rows{static_cast<const plain*>(source), 0, report}, report,
               list_of_bags(bags, offsets, batch * ranges.tables, n, false, report), fast_divisor(batch),
               ranges, row_of});
  };
  return sort_indices(
      exec,
      plan_request<Exec>{n, first_row.back(), sizeof(plain), std::is_signed_v<plain>, bounds_kind::of_user,
                         Bounds::reports || (clamps && lacks_rows), Bounds::name, enter, resolve},
      plan_room{});
}

/// The bags with their offsets where kernels of the execution space read them.
template <class Exec, class Bags>
auto bags_near(launch_context<Exec>& call, const Bags& bags) {
  if constexpr (std::is_same_v<Bags, std::int64_t>) {
    return bags;
  } else {
    auto array = dense_rows<const offset_type<Bags>, near_space<Exec>>(indices_for_kernels(call, bags),
                                                                       bags.rows(), 1, "offsets");
    array.rank = 1;
    return array;
  }
}

template <class Bag, class Exec, class Rule, class T, class Space, class States, class Index,
          class IndexSpace, class Bags, class Value, class ValueSpace, class Extra>
ticket step_tables(const Exec& exec, const Rule& rule, const std::vector<array_ref<T, Space>>& tables,
                   States& states, const array_ref<Index, IndexSpace>& indices, const Bags& bags,
                   const array_ref<Value, ValueSpace>& grads, const Extra& extra) {
  const char* verb = rows_of_bags::verb;
  using pooling = typename Bag::pooling;
  using chosen = typename Bag::chosen;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  using sum = sum_of_positions<pooling, Extra>;
  using state_type = typename States::value_type;
  using compute = step_type<T, typename state_type::value_type, Value>;
  using share = std::conditional_t<pooling::divides, const compute, const Value>;
  // nonfinite::keep, because launch_steps looks at the gradients of all tables at once.
  using call_type = step_call<
      step_policies<typename chosen::template get<step_count_category, step_count::global>,
                    typename chosen::template get<rounding_category, rounding::nearest>, nonfinite::keep>,
      Rule, state_type, array_ref<T, Space>>;
  call_type::template require_types<Exec, share, sum>();
  const std::vector<untyped_array> arrays(tables.begin(), tables.end());
  table_layout layout{{0}, columns_of_tables(verb, arrays, grads), {}};
  require_separate(verb, arrays);
  require_states(verb, tables.size(), static_cast<std::size_t>(std::ranges::distance(states)));
  table_steps<call_type> steps(tables.size());
  auto table = tables.begin();
  for (auto& state : states) steps.add(rule, *table++, state, std::type_identity<share>{});
  const auto count = static_cast<std::int64_t>(tables.size());
  const std::int64_t n = indices.rows(), batch = grads.rows();
  require_rank_one(verb, indices);
  require_bags(verb, bags, n, grads, count);
  require_a_bag(verb, n, grads);
  require_extra<pooling>(verb, extra, n, grads);

  launch_context<Exec> call(exec, verb);
  call.refuse_capture("but a graph can't repeat where the bags of a step lie; use gather_bags there");
  const std::string& label = call.label("tables");
  bool lacks_rows = false;
  for (const auto& rows : tables) {
    layout.first_row.push_back(layout.first_row.back() + rows.rows());
    lacks_rows = lacks_rows || rows.rows() == 0;
  }
  auto numbers = layout.first_row;  // count + 1 first rows, then the first columns
  numbers.insert(numbers.end(), layout.first_column.begin(), layout.first_column.end());
  const std::int64_t* const kernel_numbers = records_for_kernels(call, std::move(numbers));
  layout.ranges = {kernel_numbers, count};
  const auto kernel_bags = bags_near(call, bags);
  const auto shares = plan_bags<pooling, bounds_policy, compute>(
      exec, plain_rows(tables.front()),
      plan_tables<bounds_policy>(exec, indices, kernel_bags, batch, layout.first_row, layout.ranges,
                                 lacks_rows),
      kernel_bags, extra, no_array{}, grads, {kernel_numbers + count + 1, count, fast_divisor(batch)});
  steps.take_counters(exec);
  call.use(shares.plan.storage());
  call.roll_back_by(steps.ends(nonfinite_policy::looks && !nonfinite_policy::reports));
  call.name_tables(descriptions_of(tables, batch));
  if (n != 0)
    launch_steps<sum, nonfinite_policy::looks>(call, label, steps, tables, shares.plan, layout,
                                               shares.gradients);
  ticket launched = call.finish(tables.front(), n, std::is_signed_v<std::remove_const_t<Index>>);
  steps.template count<share>();
  return launched;
}

}  // namespace ferry::detail
