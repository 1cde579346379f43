// SPDX-License-Identifier: Apache-2.0
#include "npy_dtype.hpp"

#include "text_cursor.hpp"

#include <ferry/io/detail/dtype.hpp>
#include <ferry/io/detail/stored_array.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::detail {

std::string npy_descr(const dtype& type) {
  const std::string bytes = std::to_string(type.bytes);
  const char* order = type.bytes == 1 ? "|" : "<";
  switch (type.kind) {
    case dtype_kind::boolean:
      return "|b" + bytes;
    case dtype_kind::integer:
      return order + ("i" + bytes);
    case dtype_kind::unsigned_integer:
      return order + ("u" + bytes);
    case dtype_kind::real:
      return order + ("f" + bytes);
    case dtype_kind::brain:
      return "<V2";
    case dtype_kind::complex:
      return order + ("c" + bytes);
    case dtype_kind::e4m3:
    case dtype_kind::e5m2:  // NumPy writes <f1, which it does not read
    case dtype_kind::e8m0:
      return "<V1";
    case dtype_kind::e2m1:
    case dtype_kind::foreign:
    case dtype_kind::record:
      break;
  }
  return "|V" + bytes;
}

bool python_string(text_cursor& cursor, std::string& result) {
  cursor.skip_space();
  if (cursor.peek() == 'u') cursor.advance();  // of Python 2
  const char quote = cursor.peek();
  if (quote != '\'' && quote != '"') return cursor.fail("a string is missing");
  cursor.advance();
  result.clear();
  while (!cursor.at_end() && cursor.peek() != quote) {
    if (cursor.peek() == '\n') return cursor.fail("a string ends at a line's end");
    if (cursor.peek() == '\\') {
      result.push_back('\\');
      cursor.advance();
      if (cursor.at_end()) break;
    }
    result.push_back(cursor.peek());
    cursor.advance();
  }
  return cursor.expect(quote);
}

bool npy_scalar(text_cursor& cursor, const std::string& text, dtype& result) {
  const auto refuse = [&](const char* why) { return cursor.fail("the element type '" + text + "' " + why); };
  if (text.size() < 2) return refuse("is unknown");
  char order = text[0];
  const char kind = text[1];
  if (order == '>' && (text.substr(2) != "1" || kind == 'U'))  // a byte has no order
    return refuse(
        "is big-endian, which ferry does not read; in NumPy, save array.astype(array.dtype.newbyteorder('<'))");
  if (order == '=' && kind != 'V') order = '<';  // the machine's own
  if (order != '<' && order != '|' && order != '>' && order != '=')
    return refuse("does not begin with its byte order, '<', '=' or '|'");
  if (kind == 'O') return refuse("is Python objects, which only Python can read");
  if (kind == 'M' || kind == 'm') return refuse("is dates or durations; in NumPy, save array.view('<i8')");
  text_cursor digits(std::string_view(text).substr(2));
  std::uint64_t count = 0;
  if (!digits.number(count) || !digits.at_end() || count > (std::uint64_t{1} << 31))
    return refuse("is unknown");
  result.bytes = static_cast<std::size_t>(count);
  bool known = true;
  switch (kind) {
    case 'b':
      result.kind = dtype_kind::boolean;
      known = count == 1;
      break;
    case 'i':
    case 'u':
      result.kind = kind == 'i' ? dtype_kind::integer : dtype_kind::unsigned_integer;
      known = count == 1 || count == 2 || count == 4 || count == 8;
      break;
    case 'f':
      result.kind = dtype_kind::real;
      known = count == 1 || count == 2 || count == 4 || count == 8 || count == 16;
      if (count == 1) result.kind = dtype_kind::e5m2;  // of ml_dtypes
      break;
    case 'c':
      result.kind = dtype_kind::complex;
      known = count == 8 || count == 16 || count == 32;
      break;
    case 'V':
      // NumPy writes plain records with '|'; '<' comes from a type of its own, which ml_dtypes.bfloat16 is.
      result.kind = order == '<' && count == 2 ? dtype_kind::brain : dtype_kind::record;
      return true;
    case 'S':
      result.kind = dtype_kind::record;
      return true;
    case 'U':
      result.kind = dtype_kind::record;
      result.bytes *= 4;
      return true;
    default:
      known = false;
  }
  if (!known) return refuse("is unknown");
  return order == '<' || count == 1 || refuse("does not say its byte order");
}

bool npy_type(text_cursor& cursor, dtype& result, int depth) {
  cursor.skip_space();
  if (cursor.peek() != '[') {
    std::string text;
    return python_string(cursor, text) && npy_scalar(cursor, text, result);
  }
  if (depth == 16) return cursor.fail("element types are nested too deeply");
  cursor.advance();
  std::uint64_t record_bytes = 0;
  while (!cursor.take(']')) {
    std::string name;
    if (!cursor.expect('(')) return false;
    if (cursor.take('(')) {  // a title and a name
      if (!python_string(cursor, name) || !cursor.expect(',') || !python_string(cursor, name) ||
          !cursor.expect(')'))
        return false;
    } else if (!python_string(cursor, name)) {
      return false;
    }
    dtype field;
    if (!cursor.expect(',') || !npy_type(cursor, field, depth + 1)) return false;
    std::uint64_t bytes = field.bytes;
    bool fits = true;
    if (cursor.take(',')) {
      const auto multiply = [&](std::uint64_t extent) {
        fits = fits && grow_bytes(bytes, extent);
        if (extent == 0) bytes = 0;
        return true;
      };
      if (!python_tuple(cursor, multiply)) return false;
    }
    record_bytes += bytes;
    if (!fits || record_bytes > (std::uint64_t{1} << 31)) return cursor.fail("an element type is too large");
    if (!cursor.expect(')')) return false;
    if (!cursor.take(',') && cursor.peek() != ']') return cursor.expect(']');
  }
  result = {dtype_kind::record, static_cast<std::size_t>(record_bytes)};
  return true;
}

}  // namespace ferry::detail
