// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/visit_options.hpp>

#include <bit>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace ferry::detail {

/// Adds an option. Equal numbers count as equal, whatever their sign of zero.
template <class Option>
void add_option(call_note& note, const Option& option) {
  if constexpr (std::is_floating_point_v<Option>) {
    const double value = static_cast<double>(option);
    note.show_option(value);
    note.add_hidden(note_part::options, value == 0 ? std::uint64_t{0} : std::bit_cast<std::uint64_t>(value));
  } else if constexpr (is_number_list<Option>) {
    for (const auto number : option) add_option(note, number);
  } else if constexpr (std::has_unique_object_representations_v<Option>) {
    if constexpr (std::is_arithmetic_v<Option> || std::is_enum_v<Option>)
      note.show_option(static_cast<double>(option));
    note.add_hidden(note_part::options, option);
  }
}

/// Adds the options of a rule and of the transforms of a chain, which must be the same on all ranks. Arrays
/// of transforms are left out: each rank may have a copy of its own, on its device.
template <class Optimizer>
call_note& add_options(call_note& note, const Optimizer& optimizer) {
  const auto add = [&]<class Part>(const Part& part) {
    note.add_hidden(note_part::options, call_note(std::string_view(Part::name)).digest);
    if constexpr (has_visible_options<Part>())
      visit_options(part, [&](const auto& option) { add_option(note, option); });
  };
  using parts = optim::detail::transforms_of<Optimizer>;
  add(parts::rule_in(optimizer));
  std::apply([&](const auto&... transform) { (add(transform), ...); }, parts::transforms_in(optimizer));
  return note;
}

/// Adds the step that comes next, and the state itself with its seed.
template <class State>
call_note& add_state(call_note& note, const State& state) {
  return note.add(", step")
      .add_number(state.steps() + 1)
      .add_hidden(note_part::state, state.number())
      .add_hidden(note_part::state, state.seed());
}

}  // namespace ferry::detail
