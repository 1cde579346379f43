// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/detail/npy_header.hpp>

#include "npy_dtype.hpp"
#include "text_cursor.hpp"

#include <ferry/io/detail/dtype.hpp>
#include <ferry/io/detail/stored_array.hpp>
#include <ferry/tensor/extents.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {
namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
/// A longer dictionary is no honest one.
constexpr std::size_t longest_npy_dictionary = std::size_t{1} << 20;

/// Reads the dictionary. Returns an empty string, or why it can't be used.
std::string parse_npy_dictionary(std::string_view text, stored_array& array) {
  text_cursor cursor(text);
  bool has_type = false;
  bool has_order = false;
  bool has_shape = false;
  const auto first_time = [&](bool& has) {
    return !std::exchange(has, true) || cursor.fail("a key comes twice");
  };
  const auto entry = [&] {
    std::string key;
    if (!python_string(cursor, key) || !cursor.expect(':')) return false;
    if (key == "descr") {
      cursor.skip_space();
      const std::size_t begin = cursor.place();
      if (!first_time(has_type) || !npy_type(cursor, array.elements)) return false;
      array.type_text = text.substr(begin, std::min<std::size_t>(cursor.place() - begin, 80));
      return true;
    }
    if (key == "fortran_order") {
      array.column_major = cursor.take("True");
      return first_time(has_order) && (array.column_major || cursor.take("False") ||
                                       cursor.fail("fortran_order is neither True nor False"));
    }
    if (key == "shape")
      return first_time(has_shape) && python_tuple(cursor, [&](std::uint64_t extent) {
               if (array.rank == max_rank) return cursor.fail("the shape has more than 8 extents");
               array.extents[array.rank++] = static_cast<std::size_t>(extent);
               return true;
             });
    return cursor.fail("the key '" + key.substr(0, 40) + "' is unknown");
  };
  if (cursor.expect('{')) {
    while (!cursor.take('}') && entry())
      if (!cursor.take(',') && cursor.peek() != '}') cursor.expect('}');
    cursor.skip_space();
    if (!cursor.failed() && !cursor.at_end()) cursor.fail("there is more after the dictionary");
    if (!cursor.failed() && !(has_type && has_order && has_shape))
      cursor.fail("one of the keys descr, fortran_order and shape is missing");
  }
  return cursor.why();
}

}  // namespace

std::string npy_header(const dtype& type, std::span<const std::int64_t> extents) {
  std::string dictionary = "{'descr': '" + npy_descr(type) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < extents.size(); ++i)
    dictionary +=
        (i == 0 ? "" : " ") + std::to_string(extents[i]) + (i + 1 < extents.size() || i == 0 ? "," : "");
  dictionary += "), }";
  // Never longer than version 1 allows: 8 extents have at most 160 digits.
  constexpr std::size_t before = 10;
  const std::size_t whole = (before + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.append(whole - before - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string header(npy_magic);
  header += '\1';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

std::uint64_t begin_npy(const file& target, const dtype& type, const untyped_array& array) {
  const std::string header = npy_header(type, {array.shape.extents.data(), array.shape.rank});
  target.reserve(header.size() + static_cast<std::uint64_t>(array.shape.size()) * array.element_bytes);
  target.write_at(header.data(), header.size(), 0);
  return header.size();
}

stored_array read_npy_header(const file& source) {
  const std::uint64_t size = source.size();
  unsigned char start[12] = {};
  const auto fixed = static_cast<std::size_t>(std::min<std::uint64_t>(size, sizeof start));
  source.read_at(start, fixed, 0);
  if (fixed < 10 || !std::equal(npy_magic.begin(), npy_magic.end(), start,
                                [](char a, unsigned char b) { return static_cast<unsigned char>(a) == b; }))
    source.fail("it is no .npy file: it does not begin with '\\x93NUMPY'");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    source.fail("its .npy version is " + std::to_string(version) + "." + std::to_string(start[7]) +
                "; ferry reads 1.0, 2.0 and 3.0");
  if (version != 1 && fixed < 12) source.fail("the file ends within its header");
  std::size_t length = start[8] | static_cast<std::size_t>(start[9]) << 8;
  if (version != 1)
    length |= static_cast<std::size_t>(start[10]) << 16 | static_cast<std::size_t>(start[11]) << 24;
  const std::size_t before = version == 1 ? 10 : 12;
  if (length > longest_npy_dictionary)
    source.fail("its header claims " + std::to_string(length) + " bytes; the most are " +
                std::to_string(longest_npy_dictionary));
  if (before + length > size) source.fail("the file ends within its header");
  std::string dictionary(length, '\0');
  source.read_at(dictionary.data(), length, before);
  stored_array header;
  const std::string why = parse_npy_dictionary(dictionary, header);
  if (!why.empty()) source.fail("its header is malformed: " + why);
  header.offset = before + length;
  std::uint64_t bytes = header.elements.bytes;
  bool fits = header.elements.bytes != 0;
  if (!fits) source.fail("its elements (" + header.type_text + ") have no bytes");
  for (const std::size_t extent : header.sizes()) fits = fits && grow_bytes(bytes, extent);
  if (!fits) source.fail("its shape does not fit the address space");
  if (header.size() == 0) bytes = 0;
  if (bytes != size - header.offset)
    source.fail("its header claims " + std::to_string(bytes) + " bytes of elements, and the file has " +
                std::to_string(size - header.offset));
  if (header.rank == 0) {  // a single element is an array of one
    header.rank = 1;
    header.extents[0] = 1;
  }
  return header;
}

}  // namespace ferry::detail
