// SPDX-License-Identifier: Apache-2.0
#include "manifest_body_v2.hpp"

#include "json.hpp"

#include <ferry/io/detail/file.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {
namespace {

class body_reader {
  using json = nlohmann::json;

 public:
  explicit body_reader(const std::string& path) : path_(path) {}

  void read(std::string_view text, manifest& to) const {
    const json body = parse(text);
    require_members(body, "the body", {"files", "entries"});
    for (const json& file : list(body, "files")) {
      require_members(file, "a data file", {"number", "bytes"});
      to.files.push_back({natural<std::uint64_t>(file, "number"), natural<std::uint64_t>(file, "bytes")});
    }
    for (const json& entry : list(body, "entries")) {
      require_members(entry, "an entry", {"name", "kind", "facts", "arrays"});
      manifest_entry& next = to.entries.emplace_back();
      next.name = words(entry.at("name"));
      next.kind = words(entry.at("kind"));
      for (const json& fact : list(entry, "facts")) next.facts.push_back(fact_in(fact));
      for (const json& array : list(entry, "arrays")) next.arrays.push_back(array_in(array));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_io_error("checkpoint", path_, "not a manifest that can be read: " + what);
  }

  /// JSON without members that come twice.
  [[nodiscard]] json parse(std::string_view text) const {
    if (text.find('\0') != std::string_view::npos) fail("its body is no JSON: it has a zero byte");
    std::vector<std::set<std::string>> names;  // of the members of each object that is open
    const auto look = [&](int depth, json::parse_event_t event, json& value) {
      if (depth > most_depth) fail("its lists are nested too deeply");
      if (event == json::parse_event_t::object_start) names.emplace_back();
      if (event == json::parse_event_t::object_end) names.pop_back();
      if (event == json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
        fail("the member " + value.dump().substr(0, 80) + " comes twice in an object");
      return true;
    };
    try {
      return json::parse(text.begin(), text.end(), look);
    } catch (const json::exception& error) {
      fail(std::string("its body is no JSON: ") + error.what());
    }
  }

  void require_members(const json& value, const std::string& what,
                       std::initializer_list<const char*> names) const {
    if (!value.is_object() || value.size() != names.size() ||
        !std::all_of(names.begin(), names.end(), [&](const char* name) { return value.contains(name); }))
      fail(what + " has other members than the format's: " + text_of(value));
  }
  [[nodiscard]] static std::string text_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80);
  }
  const json& list(const json& object, const char* name) const {
    const json& items = object.at(name);
    if (!items.is_array()) fail(std::string("'") + name + "' is no list: " + text_of(items));
    return items;
  }
  template <std::unsigned_integral Number>
  Number natural(const json& value) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<Number>::max())
      fail(text_of(value) + " is no unsigned number of " + std::to_string(8 * sizeof(Number)) + " bits");
    return static_cast<Number>(value.get<std::uint64_t>());
  }
  template <std::unsigned_integral Number>
  Number natural(const json& object, const char* name) const {
    return natural<Number>(object.at(name));
  }
  /// A text, or its bytes where they are no UTF-8.
  [[nodiscard]] std::string words(const json& value) const {
    if (value.is_string()) return value.get<std::string>();
    std::string bytes;
    if (value.is_array())
      for (const json& byte : value) bytes.push_back(static_cast<char>(natural<std::uint8_t>(byte)));
    if (!value.is_array() || valid_utf8(bytes) == bytes.size()) fail(text_of(value) + " is no text");
    return bytes;
  }

  [[nodiscard]] manifest_fact fact_in(const json& value) const {
    manifest_fact fact;
    for (const char* const kind : {"text", "f64", "i64", "u64"})
      if (value.is_object() && value.contains(kind)) {
        require_members(value, "a fact", {"name", kind});
        fact.name = words(value.at("name"));
        if (kind == std::string_view("text")) {
          fact.words = words(value.at(kind));
          return fact;
        }
        fact.kind = *kind == 'f'   ? manifest_fact::real
                    : *kind == 'i' ? manifest_fact::whole
                                   : manifest_fact::natural;
        for (const json& number : list(value, kind)) fact.numbers.push_back(bits_of(number, fact.kind));
        return fact;
      }
    fail("a fact is of an unknown kind: " + text_of(value));
  }
  [[nodiscard]] std::uint64_t bits_of(const json& number, manifest_fact::kind_of kind) const {
    if (kind == manifest_fact::natural) return natural<std::uint64_t>(number);
    if (kind == manifest_fact::whole) {
      const bool fits = number.is_number_unsigned() ? number.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}
                                                    : number.is_number_integer();
      if (!fits) fail(text_of(number) + " is no signed number of 64 bits");
      return static_cast<std::uint64_t>(number.get<std::int64_t>());
    }
    if (number.is_number_float()) return std::bit_cast<std::uint64_t>(number.get<double>());
    std::uint64_t bits = 0;
    constexpr std::string_view prefix = "bits ";
    const std::string text = number.is_string() ? number.get<std::string>() : std::string();
    const char* const end = text.data() + text.size();
    if (!text.starts_with(prefix) || std::from_chars(text.data() + prefix.size(), end, bits).ptr != end ||
        text != std::string(prefix) + std::to_string(bits) || std::isfinite(std::bit_cast<double>(bits)))
      fail(text_of(number) + " is no number with a fraction");
    return bits;
  }

  [[nodiscard]] manifest_array array_in(const json& value) const {
    require_members(value, "an array",
                    {"name", "type", "element_bytes", "extents", "chunk_bytes", "unit_bytes", "chunks"});
    manifest_array array;
    array.name = words(value.at("name"));
    array.dtype = words(value.at("type"));
    array.element_bytes = natural<std::uint32_t>(value, "element_bytes");
    for (const json& extent : list(value, "extents")) array.extents.push_back(natural<std::uint64_t>(extent));
    array.chunk_bytes = natural<std::uint64_t>(value, "chunk_bytes");
    array.unit_bytes = natural<std::uint32_t>(value, "unit_bytes");
    for (const json& members : list(value, "chunks")) {
      manifest_chunk& chunk = array.chunks.emplace_back();
      chunk.piece = piece_in(members, false);
      for (std::size_t i = 3; i < members.size(); ++i)
        chunk.patches.push_back({piece_in(members[i], true), natural<std::uint32_t>(members[i][3])});
    }
    return array;
  }
  /// The first three items of a list; a patch has one more, a chunk any number.
  [[nodiscard]] manifest_piece piece_in(const json& items, bool is_patch) const {
    if (!items.is_array() || items.size() < 3 || (is_patch && items.size() != 4))
      fail("a piece is no list of its numbers: " + text_of(items));
    return {natural<std::uint32_t>(items[0]), natural<std::uint64_t>(items[1]),
            natural<std::uint32_t>(items[2])};
  }

  static constexpr int most_depth = 8;  ///< body, entries, entry, arrays, array, chunks, chunk, patch

  const std::string& path_;
};

}  // namespace

void read_manifest_body_v2(std::string_view text, const std::string& path, manifest& to) {
  body_reader(path).read(text, to);
}

}  // namespace ferry::detail
