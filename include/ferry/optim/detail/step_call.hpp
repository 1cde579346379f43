// SPDX-License-Identifier: Apache-2.0
#pragma once

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

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

/// The part of a step that does not depend on where the rows lie: checks, counters, rollback.
namespace ferry::detail {

template <class T>
inline constexpr bool is_chain = false;
template <class Rule, class... Transforms>
inline constexpr bool is_chain<optim::chain<Rule, Transforms...>> = true;

template <class Rule, class StateRule>
consteval void require_step_rule() {
  static_assert(
      Optimizer<Rule> || is_chain<Rule>,
      "ferry: step needs an optimizer rule, ferry::optim::adam say, or ferry::optim::chain of one.");
  static_assert(std::is_same_v<optim::detail::rule_of<Rule>, StateRule>,
                "ferry: step needs the state that make_state made for this optimizer, not for another one.");
}

/// Refuses policies that do not fit the rule or the table.
template <class Rule, class Transforms, class Table, class StepCount, class Rounding>
consteval void require_step_policies() {
  using Element = std::remove_const_t<typename Table::value_type>;
  static_assert(
      FloatingElement<Element> || is_encoded_table<Table>,
      "ferry: step trains tables of float, double, half_t or bhalf_t elements, or of quantized rows.");
  if constexpr (is_coded_weights<Table>) require_trainable<typename Table::quantization, Rounding>();
  static_assert(
      !Rounding::is_random || !std::is_floating_point_v<Element>,
      "ferry: rounding::stochastic is for tables of half_t, bhalf_t or quantized rows; weights of float and double are not rounded to a narrower format.");
  static_assert(
      !StepCount::catches_up || !RowOptimizer<optim::detail::rule_of<Rule>>,
      "ferry: step_count::catch_up is for rules that update each element by itself; this one looks at the row as a whole.");
  static_assert(
      !StepCount::catches_up || Transforms::allows_catch_up,
      "ferry: step_count::catch_up can't make up for transforms that leave rows out or change weights between two steps: frozen_rows, max_norm.");
  static_assert(
      !StepCount::catches_up || !is_encoded_table<Table>,
      "ferry: step_count::catch_up is for tables of floating-point numbers: quantized rows lose what a step without a gradient changes.");
  static_assert(Transforms::clip_norms <= 1,
                "ferry: at most one transform may clip the norm of the gradient.");
  static_assert(Transforms::norm_limits <= 1,
                "ferry: at most one transform may limit the norm of the weights.");
}

/// Refuses duplicates::sum_any_order if the gradients of a row can't be applied one by one.
template <class Rule, class Table, class Duplicates, class StepCount, class Rounding>
consteval void require_any_order() {
  static_assert(
      !in_any_order<Duplicates> || LinearOptimizer<Rule>,
      "ferry: duplicates::sum_any_order is for steps that are linear in the gradient, as those of sgd without transforms; other rules need the sum of a row's gradients before they change it.");
  static_assert(
      !in_any_order<Duplicates> || !StepCount::counts_rows,
      "ferry: duplicates::sum_any_order looks at positions, not at rows, so the step can't count the steps of rows; use step_count::global.");
  static_assert(
      !in_any_order<Duplicates> || (!Rounding::is_random && !is_encoded_table<Table>),
      "ferry: duplicates::sum_any_order rounds the weight to nearest after every gradient, so it takes neither quantized rows nor rounding::stochastic.");
}

/// Throws invalid_argument unless the field of a state has a row of `width` elements for each of the table.
void require_made_for(const char* verb, const untyped_array& field, const untyped_array& table,
                      std::int64_t width);

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

/// One step of a state. Nothing of the state changes before count(), and nothing throws after the step is
/// enqueued. It takes the policies that it asks for: one type serves all paths, bounds and duplicates.
template <class StepCount, class Rounding, class Nonfinite, class Rule, class T, class Space, class State,
          class Table = array_ref<T, Space>>
class step_call {
 public:
  using state_space = typename State::memory_space;
  using job_type = update_job<T, Space, typename State::value_type, state_space, Rule, StepCount, Rounding,
                              Nonfinite, Table>;

  /// Checks the types of a step with gradients of type Value.
  template <class Exec, class Value, class Duplicates>
  static consteval void require_types() {
    require_any_order<Rule, Table, Duplicates, StepCount, Rounding>();
    require_step_policies<Rule, typename job_type::template transforms_type<float>, Table, StepCount,
                          Rounding>();
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
    for (int f = 0; f < fields_; ++f) {
      auto& field = arrays_.state[static_cast<std::size_t>(f)];
      field = state.field_ref(f);
      require_made_for(verb, field, table, table.width());
    }
    for (int f = 0; f < State::row_fields; ++f) {
      auto& field = arrays_.row_state[static_cast<std::size_t>(f)];
      field = state.row_field_ref(f);
      require_made_for(verb, field, table, 1);
    }
    require_fields(verb, optim::detail::active_fields(rule), state, rule.name, table.label);
    clock_->require_policy(verb, StepCount::name, table.label);
  }

  /// The counters of the rows, if rows count: made here for the first step that needs them.
  template <class Exec>
  void take_counters([[maybe_unused]] const Exec& exec) {
    if constexpr (StepCount::counts_rows) {
      refuse_counting_capture(exec, verb_);
      clock_->require_countable(verb_, StepCount::name, table_.label);
      if (is_first()) counters_ = optim::detail::row_counters(*clock_, table_, memory_home(exec));
      arrays_.row_steps = make_ref(is_first() ? counters_ : clock_->row_steps);
      require_made_for(verb_, arrays_.row_steps, table_, 1);
      if constexpr (StepCount::catches_up) clock_->updates.make_room();
    }
  }

  /// For the kernels of the step. Refers to this call.
  [[nodiscard]] job_type job() const {
    return {table_, arrays_, fields_, optimizer_, clock_->steps + 1, clock_};
  }
  /// Takes the step back, or skips it, if the ticket finds a fault.
  [[nodiscard]] rollback ends() const {
    return optim::rollback_of(clock_, Nonfinite::looks && !Nonfinite::reports);
  }

  /// The step is enqueued.
  template <class Value>
  void count() {
    if constexpr (StepCount::counts_rows)
      if (is_first()) clock_->count_rows(StepCount::name, std::move(counters_));
    if constexpr (StepCount::catches_up)
      clock_->updates.note(optim::detail::transforms_of<Rule>::rule_in(optimizer_), clock_->steps + 1,
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

template <class Chosen, class Rule, class T, class Space, class State, class Table = array_ref<T, Space>>
using step_call_by = step_call<typename Chosen::template get<step_count_category, step_count::global>,
                               typename Chosen::template get<rounding_category, rounding::nearest>,
                               typename Chosen::template get<nonfinite_category, nonfinite::keep>, Rule, T,
                               Space, State, Table>;

}  // namespace ferry::detail
