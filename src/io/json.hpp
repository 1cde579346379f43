// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// Texts of JSON, for the headers of files.
namespace ferry::detail {

/// The offset of the first byte that is not part of valid UTF-8; the size of the text if all is. Overlong
/// forms, surrogates and code points above 10FFFF are invalid.
inline std::size_t valid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i <= more) return i;
    const auto second = static_cast<unsigned char>(text[i + 1]);
    const unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return i;
    for (std::size_t k = 2; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    i += more + 1;
  }
  return i;
}

/// A string as JSON. Bytes that are not UTF-8 become the replacement character.
inline std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ferry::detail
