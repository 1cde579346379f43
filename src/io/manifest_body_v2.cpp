// SPDX-License-Identifier: Apache-2.0
#include "manifest_body_v2.hpp"

#include "json.hpp"
#include "text_cursor.hpp"

#include <ferry/extend.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ferry::detail {
namespace {

/// Reads the values one after the other, as they come: what is not the format's ends it at once. Lists take the
/// memory of their items, and no more.
class body_reader {
 public:
  body_reader(std::string_view text, const std::string& path) : text_(text), cursor_(text), path_(path) {}

  void read(manifest& content) {
    if (const std::size_t valid = valid_utf8(text_); valid != text_.size())
      fail("byte " + std::to_string(valid) + " of its body is not UTF-8");
    object("the body", {"files", "entries"}, [&](std::size_t member) {
      if (member == 0)
        list("files", content.files, 23, [&](manifest_file& file) { read_file(file); });
      else
        list("entries", content.entries, 45, [&](manifest_entry& entry) { read_entry(entry); });
    });
    cursor_.skip_space();
    if (!cursor_.at_end()) fail("its body is no JSON: after it comes " + excerpt());
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw_io_error("checkpoint", path_, "not a manifest that can be read: " + problem);
  }
  /// The value from here on, for messages.
  [[nodiscard]] std::string excerpt() const {
    const std::string_view rest = cursor_.rest();
    return std::string(rest.substr(0, std::min<std::size_t>(40, rest.find_first_of(",]}", 1))));
  }
  [[nodiscard]] std::string since(std::size_t begin) const {
    return std::string(text_.substr(begin, std::min<std::size_t>(cursor_.place() - begin, 80)));
  }
  void expect(char expected) {
    if (!cursor_.take(expected))
      fail("its body is no JSON: '" + std::string(1, expected) + "' is missing before " + excerpt());
  }
  std::size_t begin_value() {
    cursor_.skip_space();
    return cursor_.place();
  }

  /// Calls visit(number of a member) at the value of each. There are all members, or the first one and one more.
  template <class Visit>
  void object(const std::string& subject, std::initializer_list<std::string_view> members, const Visit& visit,
              bool is_choice = false) {
    const std::size_t begin = begin_value();
    const auto require = [&](bool is_right) {
      if (!is_right) fail(subject + " has other members than the format's: " + since(begin) + excerpt());
    };
    std::uint64_t mask = 0;
    require(cursor_.take('{'));
    do {
      const std::string name = string();
      const auto member = std::find(members.begin(), members.end(), name);
      require(member != members.end());
      const std::uint64_t bit = std::uint64_t{1} << (member - members.begin());
      if ((mask & bit) != 0) fail("the member " + json_quoted(name) + " comes twice in an object");
      mask |= bit;
      expect(':');
      visit(static_cast<std::size_t>(member - members.begin()));
    } while (cursor_.take(','));
    expect('}');
    require(static_cast<std::size_t>(std::popcount(mask)) == (is_choice ? 2 : members.size()) &&
            (mask & 1) != 0);
  }
  /// Appends the items of a list, each of which has at least `least` bytes with its comma.
  template <class Item, class Read>
  void list(const std::string& name, std::vector<Item>& items, std::size_t least, const Read& read_item) {
    if (!cursor_.take('[')) fail("'" + name + "' is no list: " + excerpt());
    if (cursor_.take(']')) return;
    items.reserve(items_from_here(least));
    do read_item(items.emplace_back());
    while (cursor_.take(','));
    expect(']');
  }
  /// The items up to the end of a list that has begun, at most.
  [[nodiscard]] std::size_t items_from_here(std::size_t least) const {
    const std::string_view rest = cursor_.rest();
    std::size_t commas = 0, depth = 1, i = 0;
    bool is_text = false;
    for (; i < rest.size() && depth != 0; ++i) {
      const char letter = rest[i];
      if (letter == '"') is_text = !is_text;
      if (letter == '\\') ++i;
      if (is_text) continue;
      if (letter == '[' || letter == '{') ++depth;
      if (letter == ']' || letter == '}') --depth;
      commas += letter == ',' && depth == 1 ? 1 : 0;
    }
    return std::min(commas, i / least) + 1;
  }

  std::string string() {
    const std::size_t begin = begin_value();
    const std::string_view rest = cursor_.rest();
    std::size_t end = 1;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    if (!rest.starts_with('"') || end >= rest.size()) fail(excerpt() + " is no text");
    cursor_.advance(end + 1);
    const std::string_view token = rest.substr(0, end + 1);
    if (std::all_of(token.begin(), token.end(),
                    [](char letter) { return letter != '\\' && static_cast<unsigned char>(letter) >= ' '; }))
      return std::string(token.substr(1, end - 1));
    const auto value = nlohmann::json::parse(token.begin(), token.end(), nullptr, false);
    if (!value.is_string()) fail(since(begin) + " is no text");
    return value.get<std::string>();
  }
  /// A text, or its bytes if they are no UTF-8.
  std::string text() {
    const std::size_t begin = begin_value();
    if (cursor_.peek() != '[') return string();
    std::vector<std::uint8_t> list_of_bytes;
    list("text", list_of_bytes, 2, [&](std::uint8_t& byte) { byte = integer<std::uint8_t>(); });
    std::string bytes(list_of_bytes.begin(), list_of_bytes.end());
    if (valid_utf8(bytes) == bytes.size()) fail(since(begin) + " is no text");
    return bytes;
  }

  /// The longest text of letters that numbers have.
  std::string_view number() {
    cursor_.skip_space();
    const std::string_view rest = cursor_.rest();
    const std::string_view token =
        rest.substr(0, std::min(rest.size(), rest.find_first_not_of("+-.0123456789Ee")));
    cursor_.advance(token.size());
    return token;
  }
  template <std::integral Number>
  Number integer() {
    const std::size_t begin = begin_value();
    const std::string_view token = number();
    Number value{};
    std::from_chars(token.data(), token.data() + token.size(), value);
    if (token != std::to_string(value))
      fail((token.empty() ? excerpt() : since(begin)) + " is no " +
           (std::is_signed_v<Number> ? "signed" : "unsigned") + " number of " +
           std::to_string(8 * sizeof(Number)) + " bits");
    return value;
  }
  /// The bits of a number with a fraction, or those that a text says.
  std::uint64_t real() {
    constexpr std::string_view prefix = "bits ";
    const std::size_t begin = begin_value();
    if (cursor_.peek() == '"') {
      const std::string words = string();
      std::uint64_t bits = 0;
      if (words.starts_with(prefix))
        std::from_chars(words.data() + prefix.size(), words.data() + words.size(), bits);
      if (words == std::string(prefix) + std::to_string(bits) && !std::isfinite(std::bit_cast<double>(bits)))
        return bits;
    } else {
      const std::string_view token = number();
      const auto value = nlohmann::json::parse(token.begin(), token.end(), nullptr, false);
      if (value.is_number_float()) return std::bit_cast<std::uint64_t>(value.get<double>());
    }
    fail(since(begin) + " is no number with a fraction");
  }

  void read_file(manifest_file& file) {
    object("a data file", {"number", "bytes"},
           [&](std::size_t member) { (member == 0 ? file.number : file.bytes) = integer<std::uint64_t>(); });
  }
  void read_entry(manifest_entry& entry) {
    object("an entry", {"name", "kind", "facts", "arrays"}, [&](std::size_t member) {
      if (member == 0)
        entry.name = text();
      else if (member == 1)
        entry.kind = text();
      else if (member == 2)
        list("facts", entry.facts, 20, [&](manifest_fact& fact) { read_fact(fact); });
      else
        list("arrays", entry.arrays, 90, [&](manifest_array& array) { read_array(array); });
    });
  }
  void read_fact(manifest_fact& fact) {
    const auto read_numbers = [&](manifest_fact::kind_of kind, const auto& read_number) {
      fact.kind = kind;
      list("numbers", fact.numbers, 2, [&](std::uint64_t& bits) { bits = read_number(); });
    };
    const auto read_member = [&](std::size_t member) {
      if (member == 0)
        fact.name = text();
      else if (member == 1)
        fact.words = text();
      else if (member == 2)
        read_numbers(manifest_fact::real, [&] { return real(); });
      else if (member == 3)
        read_numbers(manifest_fact::whole,
                     [&] { return static_cast<std::uint64_t>(integer<std::int64_t>()); });
      else
        read_numbers(manifest_fact::natural, [&] { return integer<std::uint64_t>(); });
    };
    object("a fact", {"name", "text", "f64", "i64", "u64"}, read_member, true);
  }
  void read_array(manifest_array& array) {
    const auto read_member = [&](std::size_t member) {
      if (member == 0)
        array.name = text();
      else if (member == 1)
        array.dtype = text();
      else if (member == 2)
        array.element_bytes = integer<std::uint32_t>();
      else if (member == 3)
        list("extents", array.extents, 2, [&](std::uint64_t& extent) { extent = integer<std::uint64_t>(); });
      else if (member == 4)
        array.chunk_bytes = integer<std::uint64_t>();
      else if (member == 5)
        array.unit_bytes = integer<std::uint32_t>();
      else
        list("chunks", array.chunks, 8, [&](manifest_chunk& chunk) { read_chunk(chunk); });
    };
    object("an array", {"name", "type", "element_bytes", "extents", "chunk_bytes", "unit_bytes", "chunks"},
           read_member);
  }
  void read_chunk(manifest_chunk& chunk) {
    const std::size_t begin = begin_value();
    const auto require = [&](bool is_right) {
      if (!is_right) fail("a piece is no list of its numbers: " + since(begin) + excerpt());
    };
    const auto read_piece = [&](manifest_piece& piece) {
      require(cursor_.take('['));
      piece.file = integer<std::uint32_t>();
      require(cursor_.take(','));
      piece.offset = integer<std::uint64_t>();
      require(cursor_.take(','));
      piece.checksum = integer<std::uint32_t>();
    };
    read_piece(chunk.piece);
    chunk.patches.reserve(items_from_here(10) - 1);
    while (cursor_.take(',')) {
      manifest_patch& patch = chunk.patches.emplace_back();
      read_piece(patch.piece);
      require(cursor_.take(','));
      patch.units = integer<std::uint32_t>();
      require(cursor_.take(']'));
    }
    require(cursor_.take(']'));
  }

  std::string_view text_;
  text_cursor cursor_;
  const std::string& path_;
};

}  // namespace

void read_manifest_body_v2(std::string_view text, const std::string& path, manifest& content) {
  body_reader(text, path).read(content);
}

}  // namespace ferry::detail
