// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/concepts/policy.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/transform_pack.hpp>
#include <ferry/optim/detail/update_row.hpp>
#include <ferry/optim/detail/update_whole_rows.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/quantized/detail/quantized_weights.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/row_weights.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

namespace ferry::detail {

/// The type in which a step is computed: double if any operand is double, else float.
template <class... Ts>
using step_type = std::conditional_t<(std::is_same_v<std::remove_const_t<Ts>, double> || ...), double, float>;

/// The arrays of a state as a step's kernels take them.
template <class State, class Space>
struct step_arrays {
  std::array<array_ref<State, Space>, 8> state;
  std::array<array_ref<State, Space>, 4> row_state;
  array_ref<std::uint32_t, Space> row_steps;  ///< if rows count
};

/// The policies that kernels of a step ask for.
template <class StepCount, class Rounding, class Nonfinite>
struct step_policies {
  using step_count = StepCount;
  using rounding = Rounding;
  using nonfinite = Nonfinite;
};

/// Updates weights and state of a row by the combined gradient in one pass; a job of update_rows. Table: an
/// array_ref, of 8-bit rows that of their records, of other quantized rows coded_weights. Policies: a
/// step_policies.
template <class Table, class State, class Optimizer, class Policies>
struct update_job {
  using element = typename Table::value_type;
  using state_element = typename State::value_type;
  using rule_type = optim::detail::rule_of<Optimizer>;
  using clock_type = optim::step_counters<rule_type, typename State::memory_space>;
  using step_count = typename Policies::step_count;
  using nonfinite = typename Policies::nonfinite;

  Table table;
  const step_arrays<state_element, typename State::memory_space>& arrays;
  int fields;
  Optimizer optimizer;
  std::int64_t step;
  std::shared_ptr<clock_type> clock;
  step_inputs inputs{};  ///< see prepare
  /// For catch_up, see coefficient_history::last_options.
  std::optional<typename optim::coefficient_history<rule_type>::last_span> last_options{};

  static constexpr int min_fields = rule_type::min_fields;
  static constexpr int max_fields = State::max_fields;
  static constexpr int row_fields = State::row_fields;
  static constexpr int most_row_arrays = max_fields + row_fields + 1;
  static constexpr bool counts_rows = step_count::counts_rows, catches_up = step_count::catches_up;
  static constexpr bool is_encoded = is_encoded_table<Table>, writes_scratch = false;
  template <class>
  using packed_tile = kernels::packed_tile;
  template <class, class>
  static constexpr bool takes_masks = false;  ///< rules take whole tiles

  template <class Compute>
  static auto transforms_in(const Optimizer& optimizer) {
    return std::apply(
        [](const auto&... transform) {
          return kernels::pack_transforms(transform.template device_part<Compute>()...);
        },
        optim::detail::transforms_of<Optimizer>::transforms_in(optimizer));
  }
  template <class Compute>
  using transforms_type = decltype(transforms_in<Compute>(std::declval<const Optimizer&>()));

  /// True if transforms measure a row.
  static constexpr bool uses_norms =
      transforms_type<float>::clip_norms != 0 || transforms_type<float>::norm_limits != 0;
  static constexpr bool needs_whole_rows = RowOptimizer<rule_type> || is_encoded || uses_norms;

  template <class Value>
  using compute_type = step_type<element, state_element, Value>;
  template <class Value, class Duplicates>
  using wire_type = compute_type<Value>;
  template <class Exec, class Value>
  using sum_type = exact_number<Exec, compute_type<Value>>;
  template <class>
  static constexpr bool replaces_by = false;
  /// True if the gradients of a row may be applied one by one.
  [[nodiscard]] bool adds_in_any_order() const {
    if constexpr (LinearOptimizer<Optimizer>)
      return optimizer.is_linear();
    else
      return false;
  }

  template <class Value, class Duplicates, class Wire>
  auto emit(Wire* buffer, std::int64_t items, std::int64_t width) const {
    return row_job<Wire, device_space, kernels::emit_row>{
        dense_rows<Wire, device_space>(buffer, items, width, "combined")};
  }

  template <class Check>
  void for_each_array(const Check& check) const {
    check(table);
    for_each_row_array(check);
    if constexpr (counts_rows) check(arrays.row_steps);
    for_each_transform_array(check);
  }
  /// The arrays but the table of which the step changes a row with that of the table, without counters.
  template <class Check>
  void for_each_row_array(const Check& check) const {
    if constexpr (has_weight_scales<Table>) check(table.scales);
    for (int f = 0; f < fields; ++f) check(arrays.state[static_cast<std::size_t>(f)]);
    for (int f = 0; f < row_fields; ++f) check(arrays.row_state[static_cast<std::size_t>(f)]);
  }
  template <class Check>
  void for_each_transform_array(const Check& check) const {
    std::apply([&](const auto&... transform) { (transform.for_each_array(check), ...); },
               optim::detail::transforms_of<Optimizer>::transforms_in(optimizer));
  }

  /// Returns a copy with its kernels' inputs bound: the coefficient history, and the findings if gradients
  /// are checked. Checks here the values that the path has to move first.
  template <bool Staged, class Exec, class Value, class Space>
  update_job prepare(launch_context<Exec>& call, const std::string& label,
                     const array_ref<Value, Space>& values) const {
    update_job ready = *this;
    if constexpr (counts_rows) {
      using compute = compute_type<Value>;
      const auto& rule = optim::detail::transforms_of<Optimizer>::rule_in(optimizer);
      if constexpr (catches_up) {
        ready.inputs.take_updates(call, clock->updates.template history<compute>(step - 1));
        ready.last_options.emplace(clock->updates.last_options(step - 1, rule));
      } else {
        ready.inputs.take_updates(call, clock->updates.template by_count<compute>(rule, step));
      }
    }
    // The other paths have checked this already.
    if constexpr (Staged && !Table::memory_space::is_host_accessible)
      for_each_transform_array(
          [&](const auto& array) { require_direct_reach(call.verb(), call.exec(), array); });
    if constexpr (nonfinite::reports) call.name_values(values.note());
    if constexpr (nonfinite::looks) ready.inputs.template look_for_nonfinite<Staged>(call, label, values);
    return ready;
  }
  /// After prepare on a staged path: whether nothing may be written.
  [[nodiscard]] bool is_refused() const { return inputs.refused; }

  /// The step schedule of the rows, for kernels of Exec.
  template <class Exec, class Compute>
  auto schedule() const {
    const auto& rule = optim::detail::transforms_of<Optimizer>::rule_in(optimizer);
    using number = exact_number<Exec, Compute>;
    using update = decltype(rule.template coefficients<number>(step));
    if constexpr (!counts_rows) {
      return kernels::global_schedule<update>{rule.template coefficients<number>(step)};
    } else {
      const auto last = inputs.updates.count - 1;
      auto* counts = arrays.row_steps.data;
      if constexpr (catches_up) {
        return kernels::catch_up_schedule<update>{
            {rule.template coefficients<number>(step)},
            last_options->rule.template coefficients<number>(last_options->first),
            inputs.template updates_for<Exec, update>(),
            inputs.updates.first,
            last_options->first,
            last_options->same_lr,
            step,
            counts};
      } else if constexpr (ScheduledOptimizer<rule_type>) {
        const auto options = rule.template options<number, exact_number<Exec, double>>();
        using terms = decltype(rule.by_step().template at<number>(step));
        return kernels::per_row_schedule<std::remove_const_t<decltype(options)>, terms>{
            options, inputs.template updates_for<Exec, terms>(), last, counts};
      } else {
        return kernels::per_row_schedule<kernels::whole_updates, update>{
            {}, inputs.template updates_for<Exec, update>(), last, counts};
      }
    }
  }

  /// True if lanes may have eight elements: most instructions of a step of quantized rows serve the row, or a
  /// block, once a lane. Sums over a row have an order of lanes of four.
  template <class Value>
  static constexpr bool takes_wide_tiles =
      is_encoded&& lanes_share_wide_tiles<Table> && !RowOptimizer<rule_type> && !uses_norms &&
      sizeof(compute_type<Value>) <= sizeof(float);
  [[nodiscard]] bool packs_wide(const auto& values) const {
    constexpr int elements = kernels::wide_packed_tile::elements;
    return values.width() <= std::int64_t{kernels::row_sum_order::lanes} * elements &&
           packs_in<elements>(values);
  }
  /// True if a device's kernels can work in packets.
  template <class Duplicates>
  [[nodiscard]] bool packs(const auto& values) const {
    return packs_in<kernels::packed_tile::elements>(values);
  }

  /// The kernel of this step, for a state of `Fields` arrays: update_whole_rows if rules or transforms need
  /// whole rows.
  template <class Exec, class Duplicates, class Tile, int Fields, class Source, class Values>
  [[nodiscard]] auto kernel(const Source& source, std::int64_t items, const Values& values) const {
    using value = typename Values::value_type;
    using compute = exact_number<Exec, compute_type<value>>;
    const auto kernel_of = [&](const auto& change) {
      return apply_kernel<compute, Tile, Duplicates>(source, items, const_data(values), values.row_stride(),
                                                     values.width(), change);
    };
    if constexpr (LinearOptimizer<Optimizer> && in_any_order<Duplicates> && kernels::by_positions<Source> &&
                  !is_host_exec<Exec>) {
      using factor = kernels::scaled<compute>;
      return kernel_of(kernels::add_atomically<execution_backend<Exec>, element, factor>(
          table.data, table.row_stride(), factor{optimizer.template weight_per_gradient<compute>()},
          inputs.findings));
    } else if constexpr (needs_whole_rows) {
      const auto update = operation<Exec, compute_type<value>, Fields>();
      using row_state = kernels::state_rows<state_element, row_fields>;
      return kernels::update_whole_rows<compute, Tile, Duplicates, Source, std::remove_const_t<value>,
                                        std::remove_const_t<decltype(update)>, row_state>{
          source,
          values.data,
          values.row_stride(),
          values.width(),
          items,
          update,
          row_state::make(arrays.row_state)};
    } else {
      return kernel_of(operation<Exec, compute_type<value>, Fields>());
    }
  }
  /// The step on one row.
  template <class Exec, class Compute, int Fields>
  [[nodiscard]] auto operation() const {
    const auto weights = weights_of_table();
    const auto row_schedule = schedule<Exec, Compute>();
    const auto transforms = transforms_in<exact_number<Exec, Compute>>(optimizer);
    return kernels::update_row<std::remove_const_t<decltype(weights)>, state_element,
                               std::remove_const_t<decltype(row_schedule)>,
                               std::remove_const_t<decltype(transforms)>, Fields>{
        weights, kernels::state_rows<state_element, Fields>::make(arrays.state), row_schedule, transforms,
        inputs.findings};
  }

  /// The kernel that records which rows have been given the step, if rows count.
  template <class Exec, class Value, class Source>
  [[nodiscard]] auto counting_kernel(const Source& source) const {
    const auto update = operation<Exec, compute_type<Value>, min_fields>();
    return kernels::count_rows<Source, std::remove_const_t<decltype(update)>>{source, update};
  }

 private:
  template <int Elements>
  [[nodiscard]] bool packs_in(const auto& values) const {
    bool packable = in_packets<Elements>(table, values);
    for (int f = 0; f < fields; ++f)
      packable = packable && in_packets<Elements>(arrays.state[static_cast<std::size_t>(f)]);
    return packable;
  }
  [[nodiscard]] auto weights_of_table() const {
    constexpr bool is_random = Policies::rounding::is_random;
    const kernels::step_randomness randomness{clock->seed, static_cast<std::uint64_t>(step), clock->rows};
    if constexpr (is_coded_weights<Table>)
      return table.template for_kernels<is_random>(randomness);
    else if constexpr (is_encoded)
      return kernels::quantized_weights<quantization::rowwise_int8, is_random>{
          table.data, table.row_stride(), nullptr, 0, 1.0f, randomness};
    else
      return kernels::weights_rounded<is_random>(table.data, table.row_stride(), randomness);
  }
};

}  // namespace ferry::detail
