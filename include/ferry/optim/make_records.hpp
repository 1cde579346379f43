// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/make_state.hpp>
#include <ferry/optim/records.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

namespace ferry::optim {

/// Records for a table of rows x width weights of type T in Space, and for the state of `rule`, with elements
/// of StateType. The state has its initial values. The weights are the caller's to initialise, see
/// ferry::init.
///
///   auto rows = optim::make_records<float, mapped_space>(adam, "weights", n, 128);
///   init::uniform(exec, rows.table(), -0.5f, 0.5f, 42);
///   step(exec, adam, rows, indices, grads).wait();
///
///   rule       an optimizer rule or optim::chain
///   label      name of the table in messages and statistics
///   StepCount  step_count::per_row and catch_up make the counters of the rows here; by default the first
///              step that needs them makes them
///
/// Blocks until the values are set. Throws invalid_argument for options outside of their range and for
/// extents that are negative or overflow; bad_alloc and budget_exceeded if the memory is not available.
template <class T, MemorySpace Space, class StateType = accumulation_t<T>, class Rule, std::integral Rows,
          std::integral Width, class StepCount = step_count::global>
[[nodiscard]] auto make_records(const Rule& rule, const std::string& label, Rows rows, Width width,
                                StepCount = {}) {
  using plain_rule = detail::rule_of<Rule>;
  static_assert(ferry::detail::DescribesRule<plain_rule>,
                "ferry: make_records needs an optimizer rule, ferry::optim::adam say.");
  detail::require_update<plain_rule>();
  static_assert(FloatingElement<T> && FloatingElement<StateType>,
                "ferry: records hold weights and state of float, double, half_t or bhalf_t elements only.");
  const auto& plain = detail::transforms_of<Rule>::rule_in(rule);
  plain.check();
  const auto sizes = ferry::detail::checked_extents(label, rows, width);
  // Overflow and negative sizes are found as a table of such rows finds them.
  (void)shape<dynamic_rank>::make(sizes, label, (sizeof(T) + 8 * sizeof(StateType)) * 2);
  records<plain_rule, T, StateType, Space> storage(label, sizes[0], sizes[1],
                                                   detail::active_fields(plain).count);
  const device home = storage.bytes().device();
  detail::fill_new(make_ref(storage.bytes()), home, std::byte{0});
  const auto [list, count] = detail::list_fields(plain);
  int fields = 0;
  int row_fields = 0;
  for (std::size_t f = 0; f < count; ++f) {
    const detail::field_facts& field = list[f];
    const auto value = detail::initial_value<StateType>(plain_rule::name, field);
    if (!field.active) continue;
    if (field.per_row)
      storage.name_row_field(row_fields, field.name);
    else
      storage.name_field(fields, field.name);
    const auto array = field.per_row ? storage.row_field_ref(row_fields++) : storage.field_ref(fields++);
    if (field.initial != 0.0) detail::fill_new(array, home, value);
  }
  if constexpr (StepCount::counts_rows)
    storage.clock()->count_rows(StepCount::name,
                                detail::row_counters(*storage.clock(), storage.table(), device{}));
  return storage;
}

/// Refuses records without a label. Does not compile.
template <class T, MemorySpace Space, class StateType = accumulation_t<T>, class Rule, std::integral Rows,
          std::integral Width, class... StepCount>
void make_records(const Rule&, Rows, Width, StepCount...) {
  static_assert(
      sizeof(Rule) == 0,
      "ferry: make_records takes the label of the table after the rule: make_records<T, Space>(rule, \"weights\", rows, width).");
}

}  // namespace ferry::optim
