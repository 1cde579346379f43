#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace ferry::detail {

/// Appends text as the inside of a JSON string. Bytes that are not ASCII become "?", so that a label in
/// another encoding can't break the file.
inline void append_escaped(std::string& to, std::string_view text) {
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\')
      to.append(1, '\\').append(1, letter);
    else if (code < 0x20 || code >= 0x7f)
      to.append(1, '?');
    else
      to.append(1, letter);
  }
}

/// Appends nanoseconds as microseconds, in the same way for every locale.
inline void append_microseconds(std::string& to, std::int64_t nanoseconds) {
  if (nanoseconds < 0) {
    to.append(1, '-');
    nanoseconds = -nanoseconds;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(nanoseconds / 1000),
                static_cast<int>(nanoseconds % 1000));
  to.append(text);
}

/// Appends a member of a JSON object, with a comma where it is not the first.
inline void append_member(std::string& to, std::string_view key, std::string_view value) {
  to.append(to.empty() ? "\"" : ",\"").append(key).append("\":\"");
  append_escaped(to, value);
  to.append("\"");
}
inline void append_member(std::string& to, std::string_view key, std::int64_t value) {
  to.append(to.empty() ? "\"" : ",\"").append(key).append("\":").append(std::to_string(value));
}

}  // namespace ferry::detail
