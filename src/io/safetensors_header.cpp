// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/safetensors_header.hpp>

#include "json_text.hpp"
#include "text_cursor.hpp"

#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/stored_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

std::string_view safetensors_entry::type_name() const {
  return has_known_type() ? safetensors_dtypes[type].name : std::string_view(unknown_type);
}

bool has_bytes(const safetensors_entry& entry) {
  std::uint64_t bits = entry.has_known_type() ? safetensors_dtypes[entry.type].bits : 1;
  bool is_empty = false;
  for (const std::size_t extent : entry.shape) {
    is_empty = is_empty || extent == 0;
    if (!grow_bytes(bits, extent)) return false;
  }
  if (is_empty) bits = 0;
  if (!entry.has_known_type() && bits != 0) return true;
  return bits % 8 == 0 && bits / 8 == entry.end - entry.begin;
}

namespace {

/// The object that describes a tensor.
bool parse_safetensors_entry(text_cursor& at, safetensors_entry& into) {
  bool has_type = false;
  bool has_shape = false;
  bool has_offsets = false;
  const auto once = [&](bool& has) { return !std::exchange(has, true) || at.fail("a key comes twice"); };
  const auto member = [&](const std::string& key) {
    if (key == "dtype") {
      std::string name;
      if (!once(has_type) || !json_string(at, name)) return false;
      while (into.type < safetensors_dtypes.size() && safetensors_dtypes[into.type].name != name) ++into.type;
      if (!into.has_known_type()) into.unknown_type = std::move(name);
      return true;
    }
    if (key == "shape")
      return once(has_shape) && json_numbers(at, [&](std::uint64_t extent) {
               into.shape.push_back(static_cast<std::size_t>(extent));
               return true;
             });
    if (key == "data_offsets") {
      int count = 0;
      return once(has_offsets) &&
             json_numbers(at,
                          [&](std::uint64_t offset) {
                            (count == 0 ? into.begin : into.end) = offset;
                            return ++count <= 2 || at.fail("data_offsets are not two");
                          }) &&
             (count == 2 || at.fail("data_offsets are not two"));
    }
    return at.fail("the key " + json_quoted(key.substr(0, 40)) + " is unknown");
  };
  return json_object(at, member) && ((has_type && has_shape && has_offsets) ||
                                     at.fail("a tensor lacks one of dtype, shape and data_offsets"));
}

}  // namespace

std::string parse_safetensors(std::string_view text, std::uint64_t bytes, safetensors_header& into) {
  text_cursor at(text);
  if (const std::size_t valid = valid_utf8(text); valid != text.size())
    return "byte " + std::to_string(valid) + " of the header is not UTF-8";
  if (at.peek() != '{') return "the header does not begin with '{'";
  bool has_metadata = false;
  json_object(at, [&](const std::string& key) {
    if (key != "__metadata__") {
      into.entries.emplace_back().name = key;
      return parse_safetensors_entry(at, into.entries.back());
    }
    if (std::exchange(has_metadata, true)) return at.fail("__metadata__ comes twice");
    if (at.take("null")) return true;
    return json_object(at, [&](const std::string& name) {
      return json_string(at, into.metadata.emplace_back(name, std::string()).second);
    });
  });
  at.skip_space();
  if (!at.failed() && !at.at_end()) at.fail("there is more after the object");
  if (at.failed()) return at.why();

  const auto repeated = [](auto& names) {
    std::sort(names.begin(), names.end());
    const auto found = std::adjacent_find(names.begin(), names.end());
    return found == names.end() ? std::string() : json_quoted(found->substr(0, 200)) + " comes twice";
  };
  std::vector<std::string_view> names;
  for (const auto& [key, value] : into.metadata) names.push_back(key);
  if (auto why = repeated(names); !why.empty()) return "the metadata " + why;
  names.clear();
  for (const auto& each : into.entries) names.push_back(each.name);
  if (auto why = repeated(names); !why.empty()) return "the tensor " + why;

  std::sort(into.entries.begin(), into.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const auto& each : into.entries) {
    const auto say = [&](const char* what) { return "the tensor " + json_quoted(each.name) + " " + what; };
    if (each.begin != end) return say(each.begin < end ? "overlaps another one" : "comes after a hole");
    if (each.end < each.begin) return say("ends before it begins");
    if (!has_bytes(each)) return say("has another number of bytes than its shape");
    end = each.end;
  }
  if (end != bytes)
    return "the header claims " + std::to_string(end) + " bytes of tensors, and the file has " +
           std::to_string(bytes);
  return {};
}

safetensors_header read_safetensors_header(const file& from) {
  const std::uint64_t size = from.size();
  if (size < 8) from.fail("it is no safetensors file: it has only " + std::to_string(size) + " bytes");
  unsigned char start[8] = {};
  from.read_at(start, sizeof start, 0);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | start[i];
  if (length > longest_safetensors_header)
    from.fail("it is no safetensors file: its header claims " + std::to_string(length) +
              " bytes; the most are " + std::to_string(longest_safetensors_header));
  if (length > size - 8) from.fail("the file ends within its header");
  std::string text(static_cast<std::size_t>(length), '\0');
  from.read_at(text.data(), text.size(), 8);
  safetensors_header found;
  found.bytes = 8 + length;
  const std::string why = parse_safetensors(text, size - found.bytes, found);
  if (!why.empty()) from.fail("it is malformed: " + why);
  return found;
}

std::string make_safetensors_header(const std::vector<safetensors_entry>& entries,
                                    const safetensors_metadata& metadata) {
  std::string text = "{";
  const auto next = [&text] { text += text.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : metadata)
      text.append(std::exchange(first, false) ? "" : ",").append(json_quoted(key) + ":" + json_quoted(value));
    text += "}";
  }
  for (const auto& each : entries) {
    next();
    text += json_quoted(each.name) + R"(:{"dtype":)" + json_quoted(each.type_name()) + R"(,"shape":[)";
    for (std::size_t i = 0; i < each.shape.size(); ++i)
      text.append(i == 0 ? "" : ",").append(std::to_string(each.shape[i]));
    text += "],\"data_offsets\":[" + std::to_string(each.begin) + "," + std::to_string(each.end) + "]}";
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string made(8, '\0');
  for (int i = 0; i < 8; ++i)
    made[static_cast<std::size_t>(i)] =
        static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xff);
  return made + text;
}

}  // namespace ferry::detail
