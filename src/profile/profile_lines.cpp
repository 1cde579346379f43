// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/detail/profile_lines.hpp>

#include <ferry/tensor/detail/finite.hpp>

#include <charconv>
#include <cstddef>
#include <system_error>

namespace ferry::detail {

std::string in_quotes(std::string_view text) { return std::string("\"").append(text).append("\""); }

std::vector<profile_line> read_lines(std::string_view text, std::string& why) {
  std::vector<profile_line> lines;
  if (text.substr(0, text.find_first_not_of(" \t\r\n") + 1).ends_with('{')) {
    why = "is a JSON object, as earlier versions of ferry wrote; ferry::calibrate writes a new file";
    return lines;
  }
  if (!text.ends_with('\n')) {
    why = "does not end with a line feed, so it was cut off";
    return lines;
  }
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t blank = line.find(' ');
    if (blank == 0 || blank == std::string_view::npos) {
      why = "has no key and value in line " + std::to_string(number);
      return lines;
    }
    const profile_line entry{line.substr(0, blank), line.substr(blank + 1)};
    for (const profile_line& earlier : lines)
      if (earlier.key == entry.key) {
        why = "has " + in_quotes(entry.key) + " a second time in line " + std::to_string(number);
        return lines;
      }
    lines.push_back(entry);
  }
  return lines;
}

void add_line(std::string& text, std::string_view key, std::string_view value) {
  text.append(key).push_back(' ');
  for (const char c : value) text.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  text.push_back('\n');
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end || !is_finite(number)) return std::nullopt;
  return number;
}

std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

}  // namespace ferry::detail
