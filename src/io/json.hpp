// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Texts of JSON, for the headers of files.
namespace ferry::detail {

/// The place of the first byte that is not part of valid UTF-8; the size of the text if all is. Overlong
/// forms, surrogates and code points above 10FFFF are invalid.
std::size_t valid_utf8(std::string_view text);

/// A string as JSON. Bytes that are not UTF-8 become the replacement character.
std::string json_quoted(std::string_view text);

}  // namespace ferry::detail
