// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text_cursor.hpp"

#include <ferry/io/detail/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

/// The element types of .npy files. Their grammar is that of Python literals; nothing is evaluated.
namespace ferry::detail {

/// "<f4". bfloat16 is "<V2", as NumPy writes the dtype of ml_dtypes; a struct is "|V12".
std::string npy_descr(const dtype& type);

/// A string of a Python literal, without the meaning of its escapes.
bool python_string(text_cursor& cursor, std::string& result);

/// A tuple of numbers: "()", "(3,)", "(3, 4)". Calls each(number). Python 2 wrote "3L".
template <class Each>
bool python_tuple(text_cursor& cursor, const Each& visit) {
  if (!cursor.expect('(')) return false;
  for (std::size_t count = 0;; ++count) {
    if (cursor.take(')')) return count != 1 || cursor.fail("a tuple of one lacks its comma");
    std::uint64_t value = 0;
    if (!cursor.number(value)) return false;
    if (cursor.peek() == 'L') cursor.advance();
    if (!visit(value)) return false;
    if (!cursor.take(','))
      return cursor.expect(')') && (count != 0 || cursor.fail("a tuple of one lacks its comma"));
    if (count == 0 && cursor.take(')')) return true;
  }
}

/// The type of one string, "<f4" say.
bool npy_scalar(text_cursor& cursor, const std::string& text, dtype& result);

/// An element type: a string, or a list of fields ('name', type) or ('name', type, (extents)), whose bytes
/// are those of a record.
bool npy_type(text_cursor& cursor, dtype& result, int depth = 0);

}  // namespace ferry::detail
