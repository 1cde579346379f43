// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace ferry::detail {

/// Names of the parts of a note, for messages.
inline constexpr std::array<std::string_view, note_parts> note_part_names = {
    "policies or element types", "the state", "the options of the rule or its transforms",
    "the values of arguments", "what is saved or loaded"};

/// "; they differ in the state": what the words of different calls do not show; empty if they show all.
/// `calls` have a note each, by rank.
template <class Calls>
std::string hidden_difference(const Calls& calls) {
  std::string text;
  for (std::size_t part = 0; part < note_parts; ++part)
    for (const auto& call : calls)
      if (call.note.hidden[part] != calls.front().note.hidden[part]) {
        text += (text.empty() ? "; they differ in " : ", and in ") + std::string(note_part_names[part]);
        break;
      }
  return text;
}

}  // namespace ferry::detail
