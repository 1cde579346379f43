// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace ferry::detail {

/// A short text of fixed size in a JSON file: the inside of a string, or members of an object. What does not
/// fit is left out.
template <std::size_t Size>
struct trace_text {
  char data[Size] = {};
  std::size_t length = 0;

  /// Appends text as the inside of a JSON string. Bytes that are not printable ASCII become "?", so that a
  /// label in another encoding can't break the file.
  void append_escaped(std::string_view text) {
    for (const char letter : text) {
      if (room() < 2) return;
      if (letter == '"' || letter == '\\') put('\\');
      put(letter >= 0x20 && letter < 0x7f ? letter : '?');
    }
  }
  void append_member(std::string_view key, std::string_view value) {
    constexpr std::size_t around = 8;
    if (room() / 2 < around + key.size() + value.size()) return;
    open_member(key);
    put('"');
    append_escaped(value);
    put('"');
  }
  void append_member(std::string_view key, std::int64_t value) {
    constexpr std::size_t around = 16;
    if (room() / 2 < around + key.size()) return;
    open_member(key);
    char number[24];
    std::snprintf(number, sizeof number, "%lld", static_cast<long long>(value));
    append_escaped(number);
  }

 private:
  [[nodiscard]] std::size_t room() const { return length < Size ? Size - 1 - length : 0; }
  void put(char letter) {
    if (length >= Size - 1) return;
    data[length++] = letter;
    data[length] = '\0';
  }
  void open_member(std::string_view key) {
    if (length != 0) put(',');
    put('"');
    append_escaped(key);
    put('"');
    put(':');
  }
};

using trace_name = trace_text<160>;
using trace_arguments = trace_text<320>;

}  // namespace ferry::detail
