// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Texts of JSON, for the headers of files.
namespace ferry::detail {

/// The place of the first byte that is not part of valid UTF-8; the size of the text if all is. Overlong
/// forms, surrogates and code points above 10FFFF are invalid.
std::size_t valid_utf8(std::string_view text);

/// A string as JSON. Bytes that are not UTF-8 become the replacement character.
std::string json_quoted(std::string_view text);

/// A double that is a number, as JSON that gives its bits back.
std::string json_number(double value);

struct json_content;

/// A value of JSON. nlohmann's own takes memory in its destructor, and ends the process if there is none.
struct json_value {
  enum class type : std::uint8_t { null, boolean, natural, negative, real, text, list, object };

  type kind = type::null;
  std::uint64_t bits = 0;                 ///< of a number: 8 bytes of u64, i64 or double
  std::unique_ptr<json_content> content;  ///< of a text, list or object

  /// JSON, for messages.
  [[nodiscard]] std::string words() const;
};
struct json_content {
  std::string text;
  std::vector<std::string> names;  ///< of the members of an object
  std::vector<json_value> items;   ///< of a list or object
};

/// Reads JSON whose values are nested at most `most_depth` deep, and whose objects have at most 16 members, each
/// once. For other text it sets `why`.
json_value parse_json(std::string_view text, std::size_t most_depth, std::string& why);

}  // namespace ferry::detail
