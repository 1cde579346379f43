// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/options.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ferry::detail {

template <std::size_t>
using any_at = any_member<>;
/// True if member number Before is an array of several elements, which count_members counts one by one: two
/// numbers in braces take the places of two.
template <class T, std::size_t... Before, std::size_t... After>
consteval bool is_array_member(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{any_at<Before>{}..., {any_at<0>{}, any_at<1>{}}}; }
  &&!requires { T{any_at<Before>{}..., {any_at<0>{}, any_at<1>{}}, any_at<After>{}...}; };
}
template <class T, std::size_t... Place>
consteval bool has_array_member(std::index_sequence<Place...>) {
  return (is_array_member<T>(std::make_index_sequence<Place>(),
                             std::make_index_sequence<sizeof...(Place) - Place - 1>()) ||
          ...);
}

struct visit_nothing {
  template <class Option>
  void operator()(const Option&) const {}
};

/// True if visit_options compiles for a rule or a transform: by its own member, or for an aggregate of up to
/// most_options members without bases and arrays.
template <class Rule>
consteval bool has_visible_options() {
  if constexpr (requires(const Rule& rule) { rule.visit_options(visit_nothing{}); }) {
    return true;
  } else if constexpr (std::is_aggregate_v<Rule> && std::is_trivially_copyable_v<Rule>) {
    constexpr std::size_t count = count_members<Rule>();
    if constexpr (count == 0 || count > most_options || count != count_members<Rule, any_member<Rule>>())
      return false;
    else
      return !has_array_member<Rule>(std::make_index_sequence<count>());
  } else {
    return false;
  }
}

/// Adds an option; `name` has the parts of its name, for messages. Equal numbers count as equal, whatever
/// their sign of zero.
template <class Option>
void add_option(call_note& note, const Option& option, std::initializer_list<std::string_view> name) {
  if constexpr (std::is_floating_point_v<Option>) {
    const double value = static_cast<double>(option);
    note.show_option(value, name);
    note.add_hidden(note_part::options, value == 0 ? std::uint64_t{0} : std::bit_cast<std::uint64_t>(value));
  } else if constexpr (std::has_unique_object_representations_v<Option>) {
    if constexpr (std::is_arithmetic_v<Option> || std::is_enum_v<Option>)
      note.show_option(static_cast<double>(option), name);
    note.add_hidden(note_part::options, option);
  }
}

/// Adds the options of a rule or a transform. `prefix` comes before their names.
template <class Part>
void add_named_options(call_note& note, const Part& part, std::string_view prefix) {
  std::size_t count = 0;
  visit_options(part, [&](const auto&) { ++count; });
  std::size_t place = 0;
  visit_options(part, [&]<class Option>(const Option& option) {
    const std::string_view name = listed_name(option_names(Part::name), place++, count);
    const std::string_view front = name.empty() ? std::string_view() : prefix;
    const std::string_view dot = front.empty() ? "" : ".";
    if constexpr (is_number_list<Option>) {
      for (std::size_t i = 0; i < option.size(); ++i) {
        const std::string place_in_list = name.empty() ? std::string() : joined("[", i, "]");
        add_option(note, option[i], {front, dot, name, place_in_list});
      }
    } else {
      add_option(note, option, {front, dot, name});
    }
  });
}

/// Adds the options of a rule and of the transforms of a chain, which must be the same on all ranks. Arrays
/// of transforms are left out: each rank may have a copy of its own, on its device.
template <class Optimizer>
call_note& add_options(call_note& note, const Optimizer& optimizer) {
  const auto add = [&]<class Part>(const Part& part, std::string_view prefix) {
    note.add_hidden(note_part::options, call_note(std::string_view(Part::name)).digest);
    if constexpr (has_visible_options<Part>()) add_named_options(note, part, prefix);
  };
  using parts = optim::detail::transforms_of<Optimizer>;
  add(parts::rule_in(optimizer), {});
  std::apply([&](const auto&... transform) { (add(transform, transform.name), ...); },
             parts::transforms_in(optimizer));
  return note;
}

/// Adds the step that comes next, and the state itself with its seed.
template <class State>
call_note& add_state(call_note& note, const State& state) {
  const std::string_view words = note.words();
  return note.add(", step")
      .add_number(state.steps_for(words.substr(0, words.find(' '))) + 1)
      .add_hidden(note_part::state, state.number())
      .add_hidden(note_part::state, state.seed());
}

}  // namespace ferry::detail
