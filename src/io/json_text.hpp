// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text_cursor.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Strings of JSON, for the headers of files. A JSON library would add more than a second of compilation to
/// every program that includes ferry.
namespace ferry::detail {

/// The place of the first byte that is not part of valid UTF-8; the size of the text where all is. Overlong
/// forms, surrogates and code points above 10FFFF are invalid.
std::size_t valid_utf8(std::string_view text);

void append_utf8(std::string& to, std::uint32_t code);

/// The four hexadecimal digits of \uXXXX.
bool json_code_unit(text_cursor& at, std::uint32_t& into);

/// What follows a backslash.
bool json_escape(text_cursor& at, std::string& into);

/// A string of a text that is valid UTF-8.
bool json_string(text_cursor& at, std::string& into);

/// A string as JSON.
std::string json_quoted(std::string_view text);

/// Reads an object: calls member(key) after each key and colon. Returns false after a failure.
template <class Member>
bool json_object(text_cursor& at, const Member& member) {
  if (!at.expect('{')) return false;
  if (at.take('}')) return true;
  do {
    std::string key;
    if (!json_string(at, key) || !at.expect(':') || !member(key)) return false;
  } while (at.take(','));
  return at.expect('}');
}

/// Reads an array of numbers without signs.
template <class Each>
bool json_numbers(text_cursor& at, const Each& each) {
  if (!at.expect('[')) return false;
  if (at.take(']')) return true;
  do {
    std::uint64_t value = 0;
    if (!at.number(value) || !each(value)) return false;
  } while (at.take(','));
  return at.expect(']');
}

}  // namespace ferry::detail
