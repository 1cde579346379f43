#pragma once

#include <ferry/algorithm/checks.hpp>
#include <ferry/algorithm/row_jobs.hpp>
#include <ferry/algorithm/write_rows.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/kernels/update_whole_rows.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/optim/state.hpp>

#include <boost/hana/for_each.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// The type in which a step is computed: double where any operand is double, else float.
template <class... Ts>
using step_type = std::conditional_t<(std::is_same_v<std::remove_const_t<Ts>, double> || ...), double, float>;

/// Weights and state of a row, updated by the combined gradient in one pass.
template <class T, class TableSpace, class State, class StateSpace, class Rule>
struct update_job {
  array_ref<T, TableSpace> table;
  std::array<array_ref<State, StateSpace>, 8> state;
  std::array<array_ref<State, StateSpace>, 4> row_state;
  int fields;
  Rule rule;
  std::int64_t step;

  static constexpr int max_fields = optim::state<Rule, State, StateSpace>::max_fields;
  static constexpr int row_fields = optim::state<Rule, State, StateSpace>::row_fields;
  static_assert(max_fields <= 8 && row_fields <= 4);
  static constexpr bool needs_whole_rows = RowOptimizer<Rule>;

  template <class Value, class Duplicates>
  using wire_type = step_type<T, State, Value>;
  template <class>
  static constexpr bool replaces_by = false;

  template <class Value, class Duplicates, class Wire>
  auto emit(Wire* buffer, std::int64_t items, std::int64_t width) const {
    return emit_job<Wire, false>{dense_rows<Wire, device_space>(buffer, items, width, "combined")};
  }

  template <bool Host, class Duplicates, class Value, class Space, class Run>
  void visit(const array_ref<Value, Space>& values, const Run& run) const {
    visit_fields<Host, Rule::min_fields>(values, run);
  }

  template <class Check>
  void reach(const Check& check) const {
    check(table);
    for (int f = 0; f < fields; ++f) check(state[static_cast<std::size_t>(f)]);
    for (int f = 0; f < row_fields; ++f) check(row_state[static_cast<std::size_t>(f)]);
  }

  /// For rules that need whole rows: run(kernel) with the kernel of this step, see update_whole_rows.
  template <bool Host, class Duplicates, int Fields = Rule::min_fields, class Source, class Value,
            class Space, class Run>
  void visit_whole_rows(const Source& source, std::int64_t items, const array_ref<Value, Space>& values,
                        const Run& run) const {
    if constexpr (Fields < max_fields)
      if (fields != Fields) return visit_whole_rows<Host, Duplicates, Fields + 1>(source, items, values, run);
    using compute = step_type<T, State, Value>;
    using rule_fn = decltype(rule.template coefficients<compute>(step));
    const auto with_tile = [&]<class Tile>(Tile) {
      using plain = std::remove_const_t<Value>;
      kernels::update_whole_rows<compute, Tile, Duplicates, Source, plain, T, State, rule_fn, Fields,
                                 row_fields>
          kernel{source,
                 values.data,
                 values.row_stride(),
                 values.width(),
                 items,
                 table.data,
                 table.row_stride(),
                 {},
                 0,
                 {},
                 rule.template coefficients<compute>(step)};
      for (int f = 0; f < Fields; ++f) {
        kernel.state[f] = state[static_cast<std::size_t>(f)].data;
        kernel.state_stride = state[static_cast<std::size_t>(f)].row_stride();
      }
      for (int f = 0; f < row_fields; ++f) kernel.row_state[f] = row_state[static_cast<std::size_t>(f)].data;
      run(kernel);
    };
    if constexpr (Host) {
      with_tile(kernels::host_tile{});
    } else {
      bool packable = in_packets<4>(table, values);
      for (int f = 0; f < Fields; ++f)
        packable = packable && in_packets<4>(state[static_cast<std::size_t>(f)]);
      if (packable)
        with_tile(kernels::packed_tile{});
      else
        with_tile(kernels::single_tile{});
    }
  }

 private:
  /// The kernel is compiled for each number of fields that the rule's options may ask for.
  template <bool Host, int Fields, class Value, class Space, class Run>
  void visit_fields(const array_ref<Value, Space>& values, const Run& run) const {
    if constexpr (Fields < max_fields)
      if (fields != Fields) return visit_fields<Host, Fields + 1>(values, run);
    using compute = step_type<T, State, Value>;
    using rule_fn = decltype(rule.template coefficients<compute>(step));
    bool packable = in_packets<4>(table, values);
    std::int64_t state_stride = 0;
    kernels::update_row<T, State, rule_fn, Fields> operation{
        table.data, table.row_stride(), {}, 0, rule.template coefficients<compute>(step)};
    for (int f = 0; f < Fields; ++f) {  // signed: nvcc warns about unsigned numbers below a constant zero
      const auto& field = state[static_cast<std::size_t>(f)];
      operation.state[f] = field.data;
      state_stride = field.row_stride();
      packable = packable && in_packets<4>(field);
    }
    operation.state_stride = state_stride;
    visit_tiles<Host, compute>(packable, run, operation, values.data, values.row_stride(), values.width());
  }
};

}  // namespace detail

/// One optimizer step on the rows that the batch names: combines their gradients, then updates weights and
/// state in place, all in one kernel that moves 2 (w + s) + g bytes for each row.
///
///   rule     one of ferry::optim: names, defaults and formulas of torch.optim, or of the paper that it cites
///   table    rows x width of float, double, half_t or bhalf_t, any memory space
///   state    from make_state(rule, table)
///   indices  rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   grads    one row for each index, any number type
///   policies
///     a path (default path::automatic), a bounds policy (default bounds::check; a plan has its own), and
///     a duplicates policy (default duplicates::sum, as torch's coalesce)
///
/// Rows that the batch does not name keep weights and state; the step count is one for all rows. Computed in
/// double where any operand is double, else in float. Under path::staged the gradients travel through the
/// ring and the update runs on the host, beside the data.
///
/// Enqueued on `exec`. The step is counted at once and taken back by a wait() that throws, so where indices may
/// be bad, wait for a step before the next one. Throws invalid_argument for shapes or options that do not fit;
/// ticket::wait() throws out_of_range under bounds::check and invalid_argument under duplicates::reject, with
/// table and state as they were.
template <class Exec, class Rule, class Table, class StateRule, class StateType, MemorySpace StateSpace,
          class Indices, class Grads, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step(
    const Exec& exec, const Rule& rule, Table&& table, optim::state<StateRule, StateType, StateSpace>& state,
    const Indices& indices, const Grads& grads, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  static_assert(Optimizer<Rule>, "ferry: step needs an optimizer rule, ferry::optim::adam say.");
  static_assert(std::is_same_v<Rule, StateRule>,
                "ferry: step needs the state that make_state made for this optimizer, not for another one.");
  detail::require_row_verb<Exec, Table, Indices, Grads, chosen, true>();
  detail::require_one_end<typename chosen::template get<path_category, path::automatic>>();
  detail::require_mutable<Table>();
  const auto to = make_ref(table);
  const auto from = make_ref(grads);
  using element = std::remove_cvref_t<decltype(*to.data)>;
  using value = std::remove_cvref_t<decltype(*from.data)>;
  using space = typename decltype(to)::memory_space;
  static_assert(FloatingElement<element>,
                "ferry: step trains tables of float, double, half_t or bhalf_t elements only.");
  static_assert(NumberElement<value>, "ferry: step needs gradients that are numbers.");
  static_assert(
      detail::may_dereference<Exec, StateSpace>(),
      "ferry: a host execution space can't dereference rows in device_space; pass an instance of the "
      "device's execution space.");
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  static_assert(
      !std::is_same_v<path_policy, path::staged> ||
          space::is_host_accessible == StateSpace::is_host_accessible,
      "ferry: path::staged steps where the table lies, so table and state must both be in host memory or "
      "both in device_space; use path::direct or make_state<Space>.");
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using duplicates_policy = typename chosen::template get<duplicates_category, duplicates::sum>;

  rule.check();
  std::array<array_ref<StateType, StateSpace>, 8> fields;
  for (int f = 0; f < state.fields(); ++f) {
    auto& field = fields[static_cast<std::size_t>(f)];
    field = make_ref(state.field(f));
    if (field.rows() != to.rows() || field.width() != to.width())
      throw invalid_argument("ferry::step: state " + field.describe() + " was not made for " + to.describe());
  }
  std::array<array_ref<StateType, StateSpace>, 4> row_fields;
  for (int f = 0; f < state.row_fields; ++f) {
    auto& field = row_fields[static_cast<std::size_t>(f)];
    field = make_ref(state.row_field_at(f));
    if (field.rows() != to.rows() || field.width() != 1)
      throw invalid_argument("ferry::step: state " + field.describe() + " was not made for " + to.describe());
  }
  int needed = 0;
  boost::hana::for_each(rule.fields(), [&needed](const auto& field) {
    if constexpr (requires { field.active; }) needed += field.active ? 1 : 0;
  });
  if (needed != state.fields())
    throw invalid_argument("ferry::step: the options of " + std::string(Rule::name) + " need " +
                           std::to_string(needed) + " state fields, but the state of '" + to.label +
                           "' has " + std::to_string(state.fields()) + "; make it with the same options");
  const auto counter = state.step_counter();
  const detail::update_job<element, space, StateType, StateSpace, Rule> job{
      to, fields, row_fields, state.fields(), rule, *counter + 1};
  // Staged, a step runs where the table lies, and the state must lie there, too.
  constexpr bool together = space::is_host_accessible == StateSpace::is_host_accessible;
  constexpr bool staged_only =
      together && !detail::is_host_exec<Exec> && std::is_same_v<StateSpace, pageable_space>;
  const auto take_back = [counter] { --*counter; };
  auto launched = [&] {
    if constexpr (staged_only)
      return detail::write_rows<verb::step, path_policy, bounds_policy, duplicates_policy, chosen,
                                route::direct, route::ordered>(exec, job, indices, from, take_back);
    else if constexpr (together)
      return detail::write_rows<verb::step, path_policy, bounds_policy, duplicates_policy, chosen>(
          exec, job, indices, from, take_back);
    else
      return detail::write_rows<verb::step, path_policy, bounds_policy, duplicates_policy, chosen,
                                route::staged>(exec, job, indices, from, take_back);
  }();
  ++*counter;
  return launched;
}

}  // namespace ferry
