// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace ferry::detail {

/// Names of the parts of a note, for messages.
inline constexpr std::array<std::string_view, note_parts> note_part_names = {
    "policies or element types", "the state", "the options of the rule or its transforms",
    "the values of arguments", "what is saved or loaded"};

/// " (lr is 0.1 on rank 0 and 1 on rank 2)": the first option that differs; empty if the notes do not show it.
/// Options of a rule or transform that ferry does not know are numbered in the order of their declaration.
template <class Calls>
std::string option_difference(const Calls& calls) {
  const auto& first = calls.front().note;
  for (std::size_t option = 0; option < static_cast<std::size_t>(first.option_count); ++option)
    for (std::size_t rank = 1; rank < calls.size(); ++rank) {
      const auto& note = calls[rank].note;
      const shown_option &value = note.options[option], &reference = first.options[option];
      if (option >= note.option_count || value.value == reference.value) continue;
      std::array<char, 64> number{};
      std::snprintf(number.data(), number.size(), "option %zu in the order of declaration", option + 1);
      std::array<char, 240> text{};
      std::snprintf(text.data(), text.size(), " (%s is %.6g on rank 0 and %.6g on rank %zu)",
                    reference.name[0] != '\0' ? reference.name.data() : number.data(), reference.value,
                    value.value, rank);
      return text.data();
    }
  return {};
}

/// "; they differ in the state": what the words of different calls do not show; empty if they show all.
/// `calls` have a note each, by rank.
template <class Calls>
std::string hidden_difference(const Calls& calls) {
  std::string text;
  for (std::size_t part = 0; part < note_parts; ++part)
    for (const auto& call : calls)
      if (call.note.hidden[part] != calls.front().note.hidden[part]) {
        text += (text.empty() ? "; they differ in " : ", and in ") + std::string(note_part_names[part]);
        if (part == static_cast<std::size_t>(note_part::options)) text += option_difference(calls);
        break;
      }
  return text;
}

}  // namespace ferry::detail
