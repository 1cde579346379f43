// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/device.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/optim/rules/adagrad.hpp>
#include <ferry/optim/rules/adam.hpp>
#include <ferry/optim/rules/sgd.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/prebuilt.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/half.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// The steps that the library holds, see plan/detail/prebuilt.hpp.
namespace ferry::detail {

template <class Rule>
inline constexpr bool is_prebuilt_rule =
    (is_any_of<Rule, optim::sgd, optim::adagrad, optim::adam, optim::rowwise_adagrad>);

template <class State, class Rule, class Space>
inline constexpr bool is_prebuilt_state_type = false;
template <class Rule, class Space>
inline constexpr bool is_prebuilt_state_type<optim::state<Rule, float, Space>, Rule, Space> =
    is_prebuilt_rule<Rule>;

/// True if the library holds the step: a table of float, and its state in the same space.
template <class Chosen, class Exec, class Rule, class Table, class State, class Named, class Grads>
inline constexpr bool is_prebuilt_step = false;
template <class Chosen, class Exec, class Rule, class Space, class State, class Named, class Grads>
inline constexpr bool
    is_prebuilt_step<Chosen, Exec, Rule, const array_ref<float, Space>, State, const Named&, const Grads> =
        (is_prebuilt_call<Exec, Chosen> && is_prebuilt_table<array_ref<float, Space>> &&
         is_prebuilt_state_type<State, Rule, Space> && is_prebuilt_index<Named> &&
         is_prebuilt_batch<Grads, const float>);

}  // namespace ferry::detail

namespace ferry::optim::detail {

/// state_of() of the library.
template <class Rule, class StateType, class Space>
state<Rule, StateType, Space> prebuilt_state(const Rule& rule, const ferry::detail::array_label& label,
                                             device placement, std::int64_t rows, std::int64_t width);

/// True if the library holds state_of().
template <class Rule, class StateType, class Space>
inline constexpr bool is_prebuilt_state =
    (device_backend<Rule>::library_has_verbs && ferry::detail::is_prebuilt_rule<Rule> &&
     std::is_same_v<StateType, float> &&
     ferry::detail::is_any_of<Space, device_space, pinned_space, mapped_space>);

/// Sets all elements of a new array of rows on `placement`. Blocks until they are set. For elements of state,
/// counters of rows and bytes of records.
template <class T, MemorySpace Space>
void fill_new(const ferry::detail::array_ref<T, Space>& array, device placement, T value);

/// Counters of a table's rows, all equal to the step number of the state.
template <class Rule, class Space, class Table>
tensor<std::uint32_t, Space> row_counters(const step_counters<Rule, Space>& clock, const Table& table,
                                          device placement) {
  const auto rows = static_cast<std::size_t>(table.rows());
  return filled<std::uint32_t, Space>(table.label + "::row_steps", placement, {&rows, 1},
                                      static_cast<std::uint32_t>(clock.steps));
}

/// Rows, width and label of the table that a state is made for.
template <class Table>
auto described(const Table& table) {
  if constexpr (ferry::detail::is_table_object<Table>) {
    return table.ref();
  } else if constexpr (requires { typename Table::quantization; }) {
    return ferry::detail::numbers_of(table);
  } else {
    ferry::detail::require_rows<Table>();
    return make_ref(table);
  }
}

/// The default element type of a table's state, and the table's memory space.
template <class Table>
struct default_state {
  using type = accumulation_t<std::remove_const_t<typename array_traits<Table>::value_type>>;
  using space = typename array_traits<Table>::memory_space;
};
template <class Q, class Space, class ScaleSpace>
struct default_state<quantized_tensor<Q, Space, ScaleSpace>> {
  using type = float;
  using space = Space;
};

/// The state of a rule for a table of this label, with its initial values. Checks the options first.
template <class Rule, class StateType, class Space>
state<Rule, StateType, Space> state_of(const Rule& rule, const ferry::detail::array_label& label,
                                       device placement, std::int64_t rows, std::int64_t width) {
  rule.check();
  return {active_fields(rule), label, placement, rows, width};
}

/// make_state for a state on `placement`; no device means that of Kokkos.
template <MemorySpace Space, class StateType, class Rule, class Table, class StepCount>
[[nodiscard]] auto make_state_on(device placement, const Rule& rule, const Table& table, StepCount) {
  using plain_rule = rule_of<Rule>;
  static_assert(ferry::detail::DescribesRule<plain_rule>,
                "ferry: make_state needs an optimizer rule, ferry::optim::adam say.");
  require_update<plain_rule>();
  static_assert(ferry::detail::is_any_of<StateType, float, double, half_t, bhalf_t>,
                "ferry: optimizer state is kept in float, double, half_t or bhalf_t elements only.");
  static_assert(
      StepCountPolicy<StepCount>,
      "ferry: the last argument of make_state is a step_count policy: global, per_row or catch_up.");
  if constexpr (Optimizer<plain_rule>) {
    const auto& plain = transforms_of<Rule>::rule_in(rule);
    const auto like = described(table);
    auto values = [&] {
      if constexpr (is_prebuilt_state<plain_rule, StateType, Space>)
        return prebuilt_state<plain_rule, StateType, Space>(plain, like.label, placement, like.rows(),
                                                            like.width());
      else
        return state_of<plain_rule, StateType, Space>(plain, like.label, placement, like.rows(),
                                                      like.width());
    }();
    if constexpr (StepCount::counts_rows)
      values.clock()->count_rows(StepCount::name, row_counters(*values.clock(), like, placement));
    return values;
  }
}

}  // namespace ferry::optim::detail

namespace ferry::optim {

/// The state that `rule` needs for `table`, with its initial values.
///
///   Space      memory space of the state; default that of the table. A state in device_space lies on the
///              device of a table in device_space, else on the one that Kokkos uses
///   StateType  element type of the state; default the accumulation type of the table's elements (float for
///              half, bfloat16 and quantized rows, else the element type itself)
///   rule       an optimizer rule or optim::chain, whose rule is taken
///   table      an array of rows or a quantized_tensor; only its extents and its label are read
///   StepCount  step_count::per_row and catch_up make the counters of the rows here; by default the first
///              step that needs them makes them
///
/// Blocks until the values are set. Throws invalid_argument for options outside of their range; bad_alloc and
/// budget_exceeded if the memory is not available.
template <MemorySpace Space, class StateType, class Rule, class Table, class StepCount = step_count::global>
[[nodiscard]] auto make_state(const Rule& rule, const Table& table, StepCount policy = {}) {
  return detail::make_state_on<Space, StateType>(device{detail::described(table).device()}, rule, table,
                                                 policy);
}

/// As above, in Space and with the default element type.
template <MemorySpace Space, class Rule, class Table, class StepCount = step_count::global>
  requires(ferry::detail::Fits<ferry::detail::make_state_arguments, const Rule&, const Table&>)
[[nodiscard]] auto make_state(const Rule& rule, const Table& table, StepCount policy = {}) {
  return make_state<Space, typename detail::default_state<Table>::type>(rule, table, policy);
}

/// As above, in the memory space of the table and with the default element type.
template <class Rule, class Table, class StepCount = step_count::global>
  requires(ferry::detail::Fits<ferry::detail::make_state_arguments, const Rule&, const Table&>)
[[nodiscard]] auto make_state(const Rule& rule, const Table& table, StepCount policy = {}) {
  return make_state<typename detail::default_state<Table>::space>(rule, table, policy);
}

}  // namespace ferry::optim
