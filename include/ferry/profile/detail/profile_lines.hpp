// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The text of a machine's profile: one `key value` per line.
namespace ferry::detail {

/// A line: the key up to the first blank, the value after it.
struct profile_line {
  std::string_view key;
  std::string_view value;
};

std::string in_quotes(std::string_view text);

/// Reads the lines; empty ones and those that begin with # are left out. For invalid text it sets `why` and
/// returns the lines read so far. The lines point into `text`.
std::vector<profile_line> read_lines(std::string_view text, std::string& why);

/// Appends a line. Control characters of the value become blanks.
void add_line(std::string& text, std::string_view key, std::string_view value);

/// The number that the whole text is; none for other text, infinities and NaN.
std::optional<double> number_of(std::string_view text);

/// The shortest text that reads back as the same number, independent of the locale.
std::string number_text(double value);

}  // namespace ferry::detail
