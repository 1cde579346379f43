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
  char data[Size] = "";
  std::size_t length = 0;

  /// Appends text as the inside of a JSON string. Bytes that are not printable ASCII become "?", so that a
  /// label in another encoding can't break the file.
  void append_escaped(std::string_view text) {
    for (const char letter : text) {
      const bool marked = letter == '"' || letter == '\\';
      if (length + 3 > Size) return;
      if (marked) data[length++] = '\\';
      data[length++] = letter >= 0x20 && letter < 0x7f ? letter : '?';
      data[length] = '\0';
    }
  }
  void append_member(std::string_view key, std::string_view value) {
    constexpr std::size_t around = 8;
    if (length + around + key.size() + 2 * value.size() > Size) return;
    open_member(key);
    data[length++] = '"';
    append_escaped(value);
    data[length++] = '"';
    data[length] = '\0';
  }
  void append_member(std::string_view key, std::int64_t value) {
    constexpr std::size_t around = 32;
    if (length + around + key.size() > Size) return;
    open_member(key);
    length += static_cast<std::size_t>(
        std::snprintf(data + length, Size - length, "%lld", static_cast<long long>(value)));
  }

 private:
  void open_member(std::string_view key) {
    if (length != 0) data[length++] = ',';
    data[length++] = '"';
    append_escaped(key);
    data[length++] = '"';
    data[length++] = ':';
  }
};

using trace_name = trace_text<160>;
using trace_arguments = trace_text<320>;

}  // namespace ferry::detail
