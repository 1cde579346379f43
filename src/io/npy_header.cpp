// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/read_array.hpp>

#include <ferry/io/detail/file_elements.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/tensor/extents.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// The element types of .npy files have the grammar of Python literals; nothing is evaluated.
namespace ferry::detail {
namespace {

/// A position in the text of a header. The first failure is kept; all functions return false after it.
class text_cursor {
 public:
  explicit text_cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return position_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[position_]; }
  [[nodiscard]] std::size_t position() const { return position_; }
  void advance() { ++position_; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++position_;
  }

  /// True if these characters come next, after white space; they are then taken.
  bool take(std::string_view words) {
    skip_space();
    if (failed() || !text_.substr(position_).starts_with(words)) return false;
    position_ += words.size();
    return true;
  }
  bool expect(char expected) {
    return take({&expected, 1}) || fail(std::string("'") + expected + "' is missing");
  }
  /// A number without a sign, of at most 63 bits.
  bool number(std::uint64_t& value) {
    skip_space();
    const std::size_t begin = position_;
    value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++position_) {
      const auto digit = static_cast<std::uint64_t>(peek() - '0');
      if (value > (std::uint64_t{INT64_MAX} - digit) / 10) return fail("a number exceeds 63 bits");
      value = value * 10 + digit;
    }
    if (position_ == begin) return fail("a number without a sign is missing");
    return !failed() &&
           (position_ - begin == 1 || text_[begin] != '0' || fail("a number has a leading zero"));
  }

  bool fail(std::string_view problem) {
    if (why_.empty())
      why_ = std::string(problem) + " at byte " + std::to_string(position_) + " of the header";
    return false;
  }
  [[nodiscard]] bool failed() const { return !why_.empty(); }
  /// The first failure; empty if there was none.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
  std::string why_;
};

/// "<f4". bfloat16 is "<V2", as NumPy writes the dtype of ml_dtypes; a struct is "|V12".
std::string npy_descr(const dtype& type) {
  constexpr std::string_view letters = "biufVc";  // in the order of dtype_kind
  const auto kind = static_cast<std::size_t>(type.kind);
  if (type.kind == dtype_kind::brain) return "<V2";
  if (type.kind == dtype_kind::e4m3 || type.kind == dtype_kind::e5m2 || type.kind == dtype_kind::e8m0)
    return "<V1";  // NumPy writes <f1 for e5m2, which it does not read
  const char letter = kind < letters.size() ? letters[kind] : 'V';
  return std::string(letter == 'V' || type.bytes == 1 ? "|" : "<") + letter + std::to_string(type.bytes);
}

/// A string of a Python literal, without the meaning of its escapes.
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

/// A tuple of numbers: "()", "(3,)", "(3, 4)". Calls each(number). Python 2 wrote "3L".
template <class Each>
bool python_tuple(text_cursor& cursor, const Each& visit) {
  if (!cursor.expect('(')) return false;
  for (std::size_t count = 0;; ++count) {
    if (cursor.take(")")) return count != 1 || cursor.fail("a tuple of one lacks its comma");
    std::uint64_t value = 0;
    if (!cursor.number(value)) return false;
    if (cursor.peek() == 'L') cursor.advance();
    if (!visit(value)) return false;
    if (!cursor.take(","))
      return cursor.expect(')') && (count != 0 || cursor.fail("a tuple of one lacks its comma"));
    if (count == 0 && cursor.take(")")) return true;
  }
}

/// The type of one string, "<f4" say.
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

/// An element type: a string, or a list of fields ('name', type) or ('name', type, (extents)), whose bytes
/// are those of a record.
bool npy_type(text_cursor& cursor, dtype& result, int depth = 0) {
  cursor.skip_space();
  if (cursor.peek() != '[') {
    std::string text;
    return python_string(cursor, text) && npy_scalar(cursor, text, result);
  }
  if (depth == 16) return cursor.fail("element types are nested too deeply");
  cursor.advance();
  std::uint64_t record_bytes = 0;
  while (!cursor.take("]")) {
    std::string name;
    if (!cursor.expect('(')) return false;
    if (cursor.take("(")) {  // a title and a name
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
    if (cursor.take(",")) {
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
    if (!cursor.take(",") && cursor.peek() != ']') return cursor.expect(']');
  }
  result = {dtype_kind::record, static_cast<std::size_t>(record_bytes)};
  return true;
}

constexpr std::string_view npy_magic = "\x93NUMPY";
/// A longer dictionary is no honest one.
constexpr std::size_t longest_npy_dictionary = std::size_t{1} << 20;

/// Reads the dictionary. Returns an empty string, or why it can't be used.
std::string parse_npy_dictionary(std::string_view text, stored_array& array) {
  text_cursor cursor(text);
  bool has_type = false, has_order = false, has_shape = false;
  const auto first_time = [&](bool& has) {
    return !std::exchange(has, true) || cursor.fail("a key comes twice");
  };
  const auto entry = [&] {
    std::string key;
    if (!python_string(cursor, key) || !cursor.expect(':')) return false;
    if (key == "descr") {
      cursor.skip_space();
      const std::size_t begin = cursor.position();
      if (!first_time(has_type) || !npy_type(cursor, array.elements)) return false;
      array.type_text = text.substr(begin, std::min<std::size_t>(cursor.position() - begin, 80));
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
    while (!cursor.take("}") && entry())
      if (!cursor.take(",") && cursor.peek() != '}') cursor.expect('}');
    cursor.skip_space();
    if (!cursor.failed() && !cursor.at_end()) cursor.fail("there is more after the dictionary");
    if (!cursor.failed() && !(has_type && has_order && has_shape))
      cursor.fail("one of the keys descr, fortran_order and shape is missing");
  }
  return cursor.why();
}

/// The header of a row-major array.
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

}  // namespace

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
    source.fail(joined("its .npy version is ", version, ".", start[7], "; ferry reads 1.0, 2.0 and 3.0"));
  if (version != 1 && fixed < 12) source.fail("the file ends within its header");
  std::size_t length = start[8] | static_cast<std::size_t>(start[9]) << 8;
  if (version != 1)
    length |= static_cast<std::size_t>(start[10]) << 16 | static_cast<std::size_t>(start[11]) << 24;
  const std::size_t before = version == 1 ? 10 : 12;
  if (length > longest_npy_dictionary)
    source.fail(joined("its header claims ", length, " bytes; the most are ", longest_npy_dictionary));
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
    source.fail(
        joined("its header claims ", bytes, " bytes of elements, and the file has ", size - header.offset));
  if (header.rank == 0) {  // a single element is an array of one
    header.rank = 1;
    header.extents[0] = 1;
  }
  return header;
}

}  // namespace ferry::detail
