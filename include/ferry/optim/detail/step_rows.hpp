// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/int8/rowwise_int8_tensor.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/float_options.hpp>
#include <ferry/optim/detail/transform_spaces.hpp>
#include <ferry/optim/detail/update_job.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/rounding.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/rows/detail/update_rows.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// The path of step from its arguments to update_rows.
namespace ferry::detail {

template <class T>
inline constexpr bool is_chain = false;
template <class Rule, class... Transforms>
inline constexpr bool is_chain<optim::chain<Rule, Transforms...>> = true;

template <class T>
inline constexpr bool is_8_bit = false;
template <class Space>
inline constexpr bool is_8_bit<rowwise_int8_tensor<Space>> = true;
template <class Table>
inline constexpr bool is_8_bit_table = is_8_bit<std::remove_cvref_t<Table>>;
template <class Table>
using records_of = tensor<std::byte, typename std::remove_cvref_t<Table>::memory_space>;

template <class Rule, class StateRule>
consteval void require_step_rule() {
  static_assert(
      Optimizer<Rule> || is_chain<Rule>,
      "ferry: step needs an optimizer rule, ferry::optim::adam say, or ferry::optim::chain of one.");
  static_assert(std::is_same_v<optim::detail::rule_of<Rule>, StateRule>,
                "ferry: step needs the state that make_state made for this optimizer, not for another one.");
}

/// Refuses policies that do not fit the rule or the table.
template <class Rule, class Transforms, class Element, class StepCount, class Rounding>
consteval void require_step_policies() {
  static_assert(FloatingElement<Element> || std::is_same_v<Element, std::byte>,
                "ferry: step trains tables of float, double, half_t or bhalf_t elements, or of 8-bit rows.");
  static_assert(
      !Rounding::is_random || !std::is_floating_point_v<Element>,
      "ferry: rounding::stochastic is for tables of half_t, bhalf_t or 8-bit rows; weights of float and double are not rounded to a narrower format.");
  static_assert(
      !StepCount::catches_up || !RowOptimizer<optim::detail::rule_of<Rule>>,
      "ferry: step_count::catch_up is for rules that update each element by itself; this one looks at the row as a whole.");
  static_assert(
      !StepCount::catches_up || Transforms::allows_catch_up,
      "ferry: step_count::catch_up can't make up for transforms that leave rows out or change weights between two steps: frozen_rows, max_norm.");
  static_assert(
      !StepCount::catches_up || !std::is_same_v<Element, std::byte>,
      "ferry: step_count::catch_up is for tables of floating-point numbers: 8-bit rows lose what a step without a gradient changes.");
  static_assert(Transforms::clip_norms <= 1,
                "ferry: at most one transform may clip the norm of the gradient.");
  static_assert(Transforms::norm_limits <= 1,
                "ferry: at most one transform may limit the norm of the weights.");
}

/// Refuses duplicates::sum_any_order where the gradients of a row can't be applied one by one.
template <class Rule, class Element, class Duplicates, class StepCount, class Rounding>
consteval void require_any_order() {
  static_assert(
      !in_any_order<Duplicates> || LinearOptimizer<Rule>,
      "ferry: duplicates::sum_any_order is for steps that are linear in the gradient, as those of sgd without transforms; other rules need the sum of a row's gradients before they change it.");
  static_assert(
      !in_any_order<Duplicates> || !StepCount::counts_rows,
      "ferry: duplicates::sum_any_order looks at positions, not at rows, so the step can't count the steps of rows; use step_count::global.");
  static_assert(
      !in_any_order<Duplicates> || (!Rounding::is_random && !std::is_same_v<Element, std::byte>),
      "ferry: duplicates::sum_any_order rounds the weight to nearest after every gradient, so it takes neither 8-bit rows nor rounding::stochastic.");
}

[[noreturn]] void refuse_state_of_other(const char* verb, const array_note& field, const array_note& table);

inline void require_made_for(const char* verb, const auto& field, const auto& table, std::int64_t width) {
  if (field.rows() != table.rows() || field.width() != width)
    refuse_state_of_other(verb, field.note(), table.note());
}

/// Checks that the state of a table has the fields that the rule's options use.
/// @{
void require_names(const char* verb, const optim::detail::field_names& needed,
                   std::span<const std::string_view> names, std::string_view rule, const array_label& table);
template <class State>
void require_fields(const char* verb, const optim::detail::field_names& needed, const State& state,
                    std::string_view rule, const array_label& table) {
  std::array<std::string_view, 8> names;
  for (int f = 0; f < state.fields(); ++f) names[static_cast<std::size_t>(f)] = state.field_name(f);
  require_names(verb, needed, std::span(names).first(static_cast<std::size_t>(state.fields())), rule, table);
}
/// @}

/// The gradients are rows of the indices: one for each.
struct rows_of_indices {
  static constexpr const char* verb = "step";
  template <class Exec, class Chosen, class Named>
  static void require(const auto& table, const Named& named, const auto& grads) {
    require_batch<Exec, Chosen>(verb, table, named, grads);
  }
};

/// `Batch` says how the gradients belong to the indices.
/// `Duplicates` is the policy to apply.
template <class Chosen, class Batch = rows_of_indices,
          class Duplicates = typename Chosen::template get<duplicates_category, duplicates::sum>, class Exec,
          class Rule, class T, class Space, class State, class Named, class Value, class ValueSpace>
ticket step_rows(const Exec& exec, const Rule& optimizer, const array_ref<T, Space>& table, State& state,
                 const Named& named, const array_ref<Value, ValueSpace>& grads) {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  using count_policy = typename Chosen::template get<step_count_category, step_count::global>;
  using rounding_policy = typename Chosen::template get<rounding_category, rounding::nearest>;
  using nonfinite_policy = typename Chosen::template get<nonfinite_category, nonfinite::keep>;
  using state_space = typename State::memory_space;
  using job_type = update_job<T, Space, typename State::value_type, state_space, Rule, count_policy,
                              rounding_policy, nonfinite_policy>;
  require_one_end<path_policy>();
  require_any_order<Rule, T, Duplicates, count_policy, rounding_policy>();
  require_step_policies<Rule, typename job_type::template transforms_type<float>, T, count_policy,
                        rounding_policy>();
  static_assert(NumberElement<std::remove_const_t<Value>>, "ferry: step needs gradients that are numbers.");
  static_assert(
      may_dereference<Exec, state_space>(),
      "ferry: a host execution space can't dereference rows in device_space; pass an instance of the device's execution space.");
  static_assert(
      !by_host_alone<path_policy> || Space::is_host_accessible == state_space::is_host_accessible,
      "ferry: path::staged steps where the table lies, so table and state must both be in host memory or both in device_space; use path::direct or make_state<Space>.");

  static_assert(
      transform_spaces<Rule>::template reached_by<Exec>,
      "ferry: a transform reads an array in device_space, which a host execution space can't dereference.");
  static_assert(
      !by_host_alone<path_policy> || !Space::is_host_accessible || transform_spaces<Rule>::on_host,
      "ferry: path::staged steps on the host, but a transform reads an array in device_space; give the transform one in pinned_space or mapped_space, or use path::direct.");

  const auto& rule = optim::detail::transforms_of<Rule>::rule_in(optimizer);
  require_optimizer(Batch::verb, optimizer, table);
  require_options_in<typename job_type::template compute_type<Value>>(optimizer);
  if constexpr (in_any_order<Duplicates> && LinearOptimizer<Rule>)
    if (!rule.is_linear())
      return step_rows<Chosen, Batch, duplicates::sum>(exec, optimizer, table, state, named, grads);
  job_type job{table, {}, {}, state.fields(), optimizer, state.clock()->steps + 1, state.clock()};
  for (int f = 0; f < state.fields(); ++f) {
    job.state[static_cast<std::size_t>(f)] = state.field_ref(f);
    require_made_for(Batch::verb, job.state[static_cast<std::size_t>(f)], table, table.width());
  }
  for (int f = 0; f < State::row_fields; ++f) {
    job.row_state[static_cast<std::size_t>(f)] = state.row_field_ref(f);
    require_made_for(Batch::verb, job.row_state[static_cast<std::size_t>(f)], table, 1);
  }
  require_fields(Batch::verb, optim::detail::active_fields(rule), state, rule.name, table.label);
  const auto clock = state.clock();
  clock->require_policy(Batch::verb, count_policy::name, table.label);
  Batch::template require<Exec, Chosen>(table, named, grads);
  // The state counts the step once it is enqueued. An exception before that leaves the state unchanged, and
  // nothing throws after it.
  const bool first_to_count = count_policy::counts_rows && clock->row_policy.empty();
  tensor<std::uint32_t, state_space> counters;
  if constexpr (count_policy::counts_rows) {
    refuse_counting_capture(exec, Batch::verb);
    clock->require_countable(Batch::verb, count_policy::name, table.label);
    if (first_to_count) counters = optim::detail::row_counters(*clock, table, memory_home(exec));
    job.row_steps = make_ref(first_to_count ? counters : clock->row_steps);
    require_made_for(Batch::verb, job.row_steps, table, 1);
    if constexpr (count_policy::catches_up) clock->updates.make_room();
  }

  // A staged step runs where the table is, so everything that it reads must be there too.
  constexpr bool together = Space::is_host_accessible == state_space::is_host_accessible &&
                            (!Space::is_host_accessible || transform_spaces<Rule>::on_host);
  constexpr bool only_staged =
      together && !is_host_exec<Exec> && Space::is_host_accessible &&
      (std::is_same_v<state_space, pageable_space> || transform_spaces<Rule>::any_pageable);
  using clock_type = typename job_type::clock_type;
  rollback ends{clock, [](void* owner) { --static_cast<clock_type*>(owner)->steps; }, nullptr};
  if constexpr (nonfinite_policy::looks && !nonfinite_policy::reports)
    ends.skip = [](void* owner, bool counted) {
      auto& counts = *static_cast<clock_type*>(owner);
      if (counted) --counts.steps;
      ++counts.skipped;
    };
  ticket launched;
  if constexpr (only_staged)
    launched = update_rows<verb::step, Chosen, Duplicates, path_kind::direct, path_kind::ordered>(
        exec, job, named, grads, ends, Batch::verb);
  else if constexpr (together)
    launched = update_rows<verb::step, Chosen, Duplicates>(exec, job, named, grads, ends, Batch::verb);
  else
    launched = update_rows<verb::step, Chosen, Duplicates, path_kind::staged>(exec, job, named, grads, ends,
                                                                              Batch::verb);
  if (first_to_count) clock->count_rows(count_policy::name, std::move(counters));
  if constexpr (count_policy::catches_up)
    clock->updates.note(rule, job.step,
                        std::is_same_v<typename job_type::template compute_type<Value>, double>);
  ++clock->steps;
  return launched;
}

}  // namespace ferry::detail
