// SPDX-License-Identifier: Apache-2.0
#include "json_text.hpp"

#include "text_cursor.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::detail {

std::size_t valid_utf8(std::string_view text) {
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

void append_utf8(std::string& to, std::uint32_t code) {
  const auto tail = [&](unsigned shift) { to += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    to += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

bool json_code_unit(text_cursor& at, std::uint32_t& into) {
  into = 0;
  for (int i = 0; i < 4; ++i, at.advance()) {
    const char c = at.peek();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return at.fail("\\u lacks its four digits");
    into = into << 4 | static_cast<std::uint32_t>(digit);
  }
  return true;
}

bool json_escape(text_cursor& at, std::string& into) {
  const char c = at.peek();
  at.advance();
  switch (c) {
    case '"':
    case '\\':
    case '/':
      into += c;
      return true;
    case 'b':
      into += '\b';
      return true;
    case 'f':
      into += '\f';
      return true;
    case 'n':
      into += '\n';
      return true;
    case 'r':
      into += '\r';
      return true;
    case 't':
      into += '\t';
      return true;
    case 'u':
      break;
    default:
      return at.fail("an escape is unknown");
  }
  std::uint32_t code = 0;
  if (!json_code_unit(at, code)) return false;
  if (code >= 0xdc00 && code < 0xe000) return at.fail("a surrogate stands alone");
  if (code >= 0xd800 && code < 0xdc00) {
    std::uint32_t low = 0;
    if (!at.rest().starts_with("\\u")) return at.fail("a surrogate stands alone");
    at.advance(2);
    if (!json_code_unit(at, low)) return false;
    if (low < 0xdc00 || low >= 0xe000) return at.fail("a surrogate stands alone");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(into, code);
  return true;
}

bool json_string(text_cursor& at, std::string& into) {
  if (!at.expect('"')) return false;
  into.clear();
  while (!at.at_end() && at.peek() != '"') {
    const char c = at.peek();
    if (static_cast<unsigned char>(c) < 0x20) return at.fail("a string holds a control character");
    at.advance();
    if (c != '\\')
      into += c;
    else if (at.at_end() || !json_escape(at, into))
      return at.fail("the text ends within a string");
  }
  return at.expect('"');
}

std::string json_quoted(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string made = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        made += "\\\"";
        break;
      case '\\':
        made += "\\\\";
        break;
      case '\b':
        made += "\\b";
        break;
      case '\f':
        made += "\\f";
        break;
      case '\n':
        made += "\\n";
        break;
      case '\r':
        made += "\\r";
        break;
      case '\t':
        made += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          made += "\\u00";
          made += digits[static_cast<unsigned char>(c) >> 4];
          made += digits[static_cast<unsigned char>(c) & 15];
        } else {
          made += c;
        }
    }
  }
  return made + "\"";
}

}  // namespace ferry::detail
