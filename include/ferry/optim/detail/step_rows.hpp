// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/transform_pack.hpp>
#include <ferry/optim/detail/update_job.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/rounding.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/update_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

/// The path of step from its arguments to update_rows.
namespace ferry::detail {

template <class Rule, class StateRule>
consteval void require_step_rule() {
  static_assert(
      is_optimizer_argument<Rule>,
      "ferry: step needs an optimizer rule, ferry::optim::adam say, or ferry::optim::chain of one.");
  static_assert(std::is_same_v<optim::detail::rule_of<Rule>, StateRule>,
                "ferry: step needs the state that make_state made for this optimizer, not for another one.");
}

/// Throws invalid_argument unless the field of a state has a row of `width` elements for each of the table.
void require_made_for(const char* verb, const untyped_array& field, const untyped_array& table,
                      std::int64_t width);

/// Checks that the state of a table has the fields that the rule's options use.
/// @{
void require_names(const char* verb, const optim::detail::field_list& needed,
                   std::span<const std::string_view> names, std::string_view rule, const array_label& table);
template <class State>
void require_fields(const char* verb, const optim::detail::field_list& needed, const State& state,
                    std::string_view rule, const array_label& table) {
  std::array<std::string_view, 8> names;
  const auto count = static_cast<std::size_t>(state.fields());
  for (std::size_t f = 0; f < count; ++f) names[f] = state.field_name(static_cast<int>(f));
  require_names(verb, needed, std::span(names).first(count), rule, table);
}
/// @}

/// The arrays of a state that was made for the table.
template <class State, class Table>
auto checked_arrays(const char* verb, State& state, const Table& table) {
  step_arrays<typename State::value_type, typename State::memory_space> arrays;
  for (int f = 0; f < state.fields(); ++f) {
    auto& field = arrays.state[static_cast<std::size_t>(f)];
    field = state.field_ref(f);
    require_made_for(verb, field, table, table.width());
  }
  for (int f = 0; f < State::row_fields; ++f) {
    auto& field = arrays.row_state[static_cast<std::size_t>(f)];
    field = state.row_field_ref(f);
    require_made_for(verb, field, table, 1);
  }
  return arrays;
}

/// The arrays of a state for a catch_up_job; none before the first step under catch_up. Throws
/// invalid_argument if options do not fit, and if the state counts by another policy or is another table's.
template <class State>
auto arrays_for_catch_up(const char* verb, const auto& optimizer, State& state, const auto& table) {
  require_optimizer(verb, optimizer, table);
  std::optional<decltype(checked_arrays(verb, state, table))> arrays;
  const auto& clock = *state.clock();
  if (clock.row_policy.empty()) return arrays;
  if (clock.row_policy != step_count::catch_up::name)
    throw invalid_argument(joined("ferry::", verb, ": the rows of '", table.label, "' count their steps by ",
                                  clock.row_policy, ", so there is nothing to catch up with"));
  arrays = checked_arrays(verb, state, table);
  arrays->row_steps = make_ref(state.clock()->row_steps);
  require_made_for(verb, arrays->row_steps, table, 1);
  return arrays;
}

/// One step of a state: its checks, counters and rollback. Nothing of the state changes before count(), and
/// nothing throws after the step is enqueued. Policies: a step_policies.
template <class Policies, class Rule, class State, class Table>
class step_call {
 public:
  using state_space = typename State::memory_space;
  using step_count = typename Policies::step_count;
  using job_type = update_job<Table, State, Rule, Policies>;

  /// Checks the types of a step with gradients of type Value.
  template <class Exec, class Value, class Duplicates>
  static consteval void require_types() {
    using rounding = typename Policies::rounding;
    using transforms = typename job_type::template transforms_type<float>;
    using element = std::remove_const_t<typename Table::value_type>;
    constexpr bool any_order = in_any_order<Duplicates>, catches_up = step_count::catches_up;
    constexpr bool encoded = is_encoded_table<Table>;
    static_assert(
        !any_order || LinearOptimizer<Rule>,
        "ferry: duplicates::sum_any_order is for steps that are linear in the gradient, as those of sgd without transforms; other rules need the sum of a row's gradients before they change it.");
    static_assert(
        !any_order || !step_count::counts_rows,
        "ferry: duplicates::sum_any_order looks at positions, not at rows, so the step can't count the steps of rows; use step_count::global.");
    static_assert(
        !any_order || (!rounding::is_random && !encoded),
        "ferry: duplicates::sum_any_order rounds the weight to nearest after every gradient, so it takes neither quantized rows nor rounding::stochastic.");
    static_assert(
        FloatingElement<element> || encoded,
        "ferry: step trains tables of float, double, half_t or bhalf_t elements, or of quantized rows.");
    if constexpr (is_coded_weights<Table>) require_trainable<typename Table::quantization, rounding>();
    static_assert(
        !rounding::is_random || !std::is_floating_point_v<element>,
        "ferry: rounding::stochastic is for tables of half_t, bhalf_t or quantized rows; weights of float and double are not rounded to a narrower format.");
    static_assert(
        !catches_up || !RowOptimizer<optim::detail::rule_of<Rule>>,
        "ferry: step_count::catch_up is for rules that update each element by itself; this one looks at the row as a whole.");
    static_assert(
        !catches_up || transforms::allows_catch_up,
        "ferry: step_count::catch_up can't make up for transforms that leave rows out or change weights between two steps: frozen_rows, max_norm.");
    static_assert(
        !catches_up || !encoded,
        "ferry: step_count::catch_up is for tables of floating-point numbers: quantized rows lose what a step without a gradient changes.");
    static_assert(transforms::clip_norms <= 1,
                  "ferry: at most one transform may clip the norm of the gradient.");
    static_assert(transforms::norm_limits <= 1,
                  "ferry: at most one transform may limit the norm of the weights.");
    static_assert(NumberElement<std::remove_const_t<Value>>, "ferry: step needs gradients that are numbers.");
    static_assert(
        may_dereference<Exec, state_space>(),
        "ferry: a host execution space can't dereference rows in device_space; pass an instance of the device's execution space.");
    static_assert(
        transform_spaces<Rule>::template reached_by<Exec>,
        "ferry: a transform reads an array in device_space, which a host execution space can't dereference.");
  }

  /// Takes the arrays of the state. Throws invalid_argument if options, fields or policies do not fit.
  template <class Value>
  step_call(const char* verb, const Rule& optimizer, const Table& table, State& state,
            std::type_identity<Value>)
      : verb_(verb), optimizer_(optimizer), table_(table), clock_(state.clock()), fields_(state.fields()) {
    const auto& rule = optim::detail::transforms_of<Rule>::rule_in(optimizer);
    require_optimizer(verb, optimizer, table);
    require_options_in<typename job_type::template compute_type<Value>>(optimizer);
    arrays_ = checked_arrays(verb, state, table);
    require_fields(verb, optim::detail::active_fields(rule), state, rule.name, table.label);
    clock_->require_policy(verb, step_count::name, table.label);
  }

  /// The counters of the rows, if rows count: made here for the first step that needs them.
  template <class Exec>
  void take_counters([[maybe_unused]] const Exec& exec) {
    if constexpr (step_count::counts_rows) {
      if (execution_backend<Exec>::capturing(exec)) refuse_counting_capture(verb_);
      clock_->require_countable(verb_, step_count::name, table_.label);
      if (is_first()) counters_ = optim::detail::row_counters(*clock_, table_, memory_home(exec));
      arrays_.row_steps = make_ref(is_first() ? counters_ : clock_->row_steps);
      require_made_for(verb_, arrays_.row_steps, table_, 1);
      if constexpr (step_count::catches_up) clock_->updates.make_room();
    }
  }

  /// For the kernels of the step. Refers to this call.
  [[nodiscard]] job_type job() const {
    return {table_, arrays_, fields_, optimizer_, clock_->steps + 1, clock_};
  }
  /// Takes the step back, or skips it, if the ticket finds a fault.
  [[nodiscard]] rollback ends() const {
    return optim::rollback_of(clock_, Policies::nonfinite::looks && !Policies::nonfinite::reports);
  }

  /// The step is enqueued.
  template <class Value>
  void count() {
    if constexpr (step_count::counts_rows)
      if (is_first()) clock_->count_rows(step_count::name, std::move(counters_));
    if constexpr (step_count::catches_up)
      clock_->updates.record(optim::detail::transforms_of<Rule>::rule_in(optimizer_), clock_->steps + 1,
                             std::is_same_v<typename job_type::template compute_type<Value>, double>);
    ++clock_->steps;
  }

 private:
  [[nodiscard]] bool is_first() const { return clock_->row_policy.empty(); }

  const char* verb_;
  const Rule& optimizer_;
  const Table& table_;
  std::shared_ptr<typename job_type::clock_type> clock_;
  int fields_;
  step_arrays<typename State::value_type, state_space> arrays_;
  tensor<std::uint32_t, state_space> counters_;
};

/// The policies of a step by those of its call.
template <class Chosen>
using step_policies_of = step_policies<typename Chosen::template get<step_count_category, step_count::global>,
                                       typename Chosen::template get<rounding_category, rounding::nearest>,
                                       typename Chosen::template get<nonfinite_category, nonfinite::keep>>;

/// A step under step_count::catch_up of which kernels take the missed steps alone.
template <class Rule, class T, class Space, class State>
using catch_up_job = update_job<array_ref<T, Space>, State, Rule,
                                step_policies<step_count::catch_up, rounding::nearest, nonfinite::keep>>;

template <class Exec, class Rule, class T, class Space, class State>
consteval void require_catch_up() {
  require_step_rule<Rule, typename State::rule_type>();
  static_assert(
      may_dereference<Exec, typename State::memory_space>() &&
          transform_spaces<Rule>::template reached_by<Exec>,
      "ferry: a host execution space can't dereference state or factors in device_space; pass an instance of the device's execution space.");
  using transforms = typename catch_up_job<Rule, T, Space, State>::template transforms_type<float>;
  static_assert(!RowOptimizer<optim::detail::rule_of<Rule>> && transforms::allows_catch_up,
                "ferry: this rule, or one of its transforms, can't be combined with step_count::catch_up.");
}

/// The gradients are rows of the indices: one for each.
struct rows_of_indices {
  static constexpr const char* verb = "step";
  template <class Exec, class Chosen, class Batch>
  static void require(const auto& table, const Batch& batch, const auto& grads) {
    require_batch<Exec, Chosen>(verb, table, batch, grads);
  }
};

/// `Verb` says how the gradients belong to the indices, `access` where the rows lie.
template <class Chosen, class Verb = rows_of_indices, class Exec, class Rule, class Access, class State>
ticket step_rows(const Exec& exec, const Rule& optimizer, const Access& access, State& state,
                 const auto& batch, const auto& grads) {
  using value = typename std::remove_cvref_t<decltype(grads)>::value_type;
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  using state_space = typename State::memory_space;
  using space = typename Access::memory_space;
  using duplicates_policy = typename Chosen::template get<duplicates_category, duplicates::sum>;
  using table_type = typename step_table<Access>::type;
  using scale_space = typename scale_space_of<table_type>::type;
  using call_type = step_call<step_policies_of<Chosen>, Rule, State, table_type>;
  require_one_end<path_policy>();
  call_type::template require_types<Exec, value, duplicates_policy>();
  static_assert(
      !by_host_alone<path_policy> || space::is_host_accessible == state_space::is_host_accessible,
      "ferry: path::staged steps where the table lies, so table and state must both be in host memory or both in device_space; use path::direct or make_state<Space>.");
  static_assert(
      !by_host_alone<path_policy> || !space::is_host_accessible || transform_spaces<Rule>::on_host,
      "ferry: path::staged steps on the host, but a transform reads an array in device_space; give the transform one in pinned_space or mapped_space, or use path::direct.");

  static_assert(
      !by_host_alone<path_policy> || space::is_host_accessible == scale_space::is_host_accessible,
      "ferry: path::staged steps where the table lies, so codes and scales must both be in host memory or both in device_space; use path::direct.");

  const table_type& table = access.table();
  call_type call(Verb::verb, optimizer, table, state, std::type_identity<value>{});
  access.require_foreign(Verb::verb, batch, grads);
  Verb::template require<Exec, Chosen>(table, batch, grads);
  call.take_counters(exec);
  const auto job = call.job();
  if constexpr (!Access::is_strided)
    job.for_each_transform_array([&](const auto& array) { access.require_foreign(Verb::verb, array); });

  // A staged step runs where the table is, so everything that it reads must be there too.
  constexpr bool together = space::is_host_accessible == state_space::is_host_accessible &&
                            space::is_host_accessible == scale_space::is_host_accessible &&
                            (!space::is_host_accessible || transform_spaces<Rule>::on_host);
  constexpr bool only_staged =
      together && !is_host_exec<Exec> && space::is_host_accessible &&
      (is_any_of<pageable_space, state_space, scale_space> || transform_spaces<Rule>::any_pageable);
  const row_update update{exec, access, job, batch, grads, call.ends(), Verb::verb};
  ticket launched;
  if constexpr (only_staged)
    launched =
        update_rows<verb::step, Chosen, duplicates_policy, path_kind::direct, path_kind::ordered>(update);
  else if constexpr (together)
    launched = update_rows<verb::step, Chosen, duplicates_policy>(update);
  else
    launched = update_rows<verb::step, Chosen, duplicates_policy, path_kind::staged>(update);
  call.template count<value>();
  return launched;
}

}  // namespace ferry::detail
