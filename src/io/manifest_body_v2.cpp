// SPDX-License-Identifier: Apache-2.0
#include "manifest_body_v2.hpp"

#include "json.hpp"

#include <ferry/memory/detail/file.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {
namespace {

class body_reader {
  using type = json_value::type;

 public:
  explicit body_reader(const std::string& path) : path_(path) {}

  void read(std::string_view text, manifest& content) const {
    std::string why;
    const json_value body = parse_json(text, most_depth, why);
    if (!why.empty()) fail("its body: " + why);
    require_members(body, "the body", {"files", "entries"});
    for (const auto& file : list(body, "files")) {
      require_members(file, "a data file", {"number", "bytes"});
      content.files.push_back(
          {natural<std::uint64_t>(file, "number"), natural<std::uint64_t>(file, "bytes")});
    }
    for (const auto& entry : list(body, "entries")) {
      require_members(entry, "an entry", {"name", "kind", "facts", "arrays"});
      manifest_entry& next = content.entries.emplace_back();
      next.name = words(*member(entry, "name"));
      next.kind = words(*member(entry, "kind"));
      for (const auto& fact : list(entry, "facts")) next.facts.push_back(fact_in(fact));
      for (const auto& array : list(entry, "arrays")) next.arrays.push_back(array_in(array));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw_io_error("checkpoint", path_, "not a manifest that can be read: " + problem);
  }

  /// Null if the value has no such member.
  static const json_value* member(const json_value& value, std::string_view name) {
    if (value.kind != type::object) return nullptr;
    const auto& names = value.content->names;
    const auto name_position = std::find(names.begin(), names.end(), name);
    return name_position == names.end()
               ? nullptr
               : &value.content->items[static_cast<std::size_t>(name_position - names.begin())];
  }
  void require_members(const json_value& value, const std::string& subject,
                       std::initializer_list<const char*> names) const {
    if (value.kind != type::object || value.content->names.size() != names.size() ||
        !std::all_of(names.begin(), names.end(),
                     [&](const char* name) { return member(value, name) != nullptr; }))
      fail(subject + " has other members than the format's: " + text_of(value));
  }
  [[nodiscard]] static std::string text_of(const json_value& value) { return value.words().substr(0, 80); }
  [[nodiscard]] const std::vector<json_value>& list(const json_value& object, const char* name) const {
    const json_value& items = *member(object, name);
    if (items.kind != type::list) fail(std::string("'") + name + "' is no list: " + text_of(items));
    return items.content->items;
  }
  template <std::unsigned_integral Number>
  Number natural(const json_value& value) const {
    if (value.kind != type::natural || value.bits > std::numeric_limits<Number>::max())
      fail(text_of(value) + " is no unsigned number of " + std::to_string(8 * sizeof(Number)) + " bits");
    return static_cast<Number>(value.bits);
  }
  template <std::unsigned_integral Number>
  Number natural(const json_value& object, const char* name) const {
    return natural<Number>(*member(object, name));
  }
  /// A text, or its bytes if they are no UTF-8.
  [[nodiscard]] std::string words(const json_value& value) const {
    if (value.kind == type::text) return value.content->text;
    std::string bytes;
    if (value.kind == type::list)
      for (const auto& byte : value.content->items)
        bytes.push_back(static_cast<char>(natural<std::uint8_t>(byte)));
    if (value.kind != type::list || valid_utf8(bytes) == bytes.size()) fail(text_of(value) + " is no text");
    return bytes;
  }

  [[nodiscard]] manifest_fact fact_in(const json_value& value) const {
    manifest_fact fact;
    for (const char* const kind : {"text", "f64", "i64", "u64"})
      if (const json_value* const content = member(value, kind)) {
        require_members(value, "a fact", {"name", kind});
        fact.name = words(*member(value, "name"));
        if (kind == std::string_view("text")) {
          fact.words = words(*content);
          return fact;
        }
        fact.kind = *kind == 'f'   ? manifest_fact::real
                    : *kind == 'i' ? manifest_fact::whole
                                   : manifest_fact::natural;
        for (const json_value& number : list(value, kind)) fact.numbers.push_back(bits_of(number, fact.kind));
        return fact;
      }
    fail("a fact is of an unknown kind: " + text_of(value));
  }
  [[nodiscard]] std::uint64_t bits_of(const json_value& number, manifest_fact::kind_of kind) const {
    if (kind == manifest_fact::natural) return natural<std::uint64_t>(number);
    if (kind == manifest_fact::whole) {
      const bool fits = number.kind == type::negative ||
                        (number.kind == type::natural && number.bits <= std::uint64_t{INT64_MAX});
      if (!fits) fail(text_of(number) + " is no signed number of 64 bits");
      return number.bits;
    }
    if (number.kind == type::real) return number.bits;
    std::uint64_t bits = 0;
    constexpr std::string_view prefix = "bits ";
    const std::string text = number.kind == type::text ? number.content->text : std::string();
    const char* const end = text.data() + text.size();
    if (!text.starts_with(prefix) || std::from_chars(text.data() + prefix.size(), end, bits).ptr != end ||
        text != std::string(prefix) + std::to_string(bits) || std::isfinite(std::bit_cast<double>(bits)))
      fail(text_of(number) + " is no number with a fraction");
    return bits;
  }

  [[nodiscard]] manifest_array array_in(const json_value& value) const {
    require_members(value, "an array",
                    {"name", "type", "element_bytes", "extents", "chunk_bytes", "unit_bytes", "chunks"});
    manifest_array array;
    array.name = words(*member(value, "name"));
    array.dtype = words(*member(value, "type"));
    array.element_bytes = natural<std::uint32_t>(value, "element_bytes");
    for (const auto& extent : list(value, "extents")) array.extents.push_back(natural<std::uint64_t>(extent));
    array.chunk_bytes = natural<std::uint64_t>(value, "chunk_bytes");
    array.unit_bytes = natural<std::uint32_t>(value, "unit_bytes");
    for (const auto& members : list(value, "chunks")) {
      manifest_chunk& chunk = array.chunks.emplace_back();
      chunk.piece = piece_in(members, false);
      const auto& parts = members.content->items;
      for (std::size_t i = 3; i < parts.size(); ++i)
        chunk.patches.push_back(
            {piece_in(parts[i], true), natural<std::uint32_t>(parts[i].content->items[3])});
    }
    return array;
  }
  /// The first three items of a list; a patch has one more, a chunk any number.
  [[nodiscard]] manifest_piece piece_in(const json_value& value, bool is_patch) const {
    if (value.kind != type::list || value.content->items.size() < 3 ||
        (is_patch && value.content->items.size() != 4))
      fail("a piece is no list of its numbers: " + text_of(value));
    const auto& items = value.content->items;
    return {natural<std::uint32_t>(items[0]), natural<std::uint64_t>(items[1]),
            natural<std::uint32_t>(items[2])};
  }

  static constexpr std::size_t most_depth = 8;  ///< body, entries, entry, arrays, array, chunks, chunk, patch

  const std::string& path_;
};

}  // namespace

void read_manifest_body_v2(std::string_view text, const std::string& path, manifest& content) {
  body_reader(path).read(text, content);
}

}  // namespace ferry::detail
