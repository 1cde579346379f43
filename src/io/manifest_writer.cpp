// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/manifest_writer.hpp>

#include "crc32c.hpp"
#include "json.hpp"

#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {
namespace {

using nlohmann::ordered_json;

template <class Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Names may have any bytes: those that are no UTF-8 are a list of numbers.
ordered_json text_as_json(std::string_view text) {
  if (valid_utf8(text) == text.size()) return text;
  ordered_json bytes = ordered_json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

/// JSON has no infinities and no NaNs: these are their bits.
ordered_json real_as_json(std::uint64_t bits) {
  const auto value = std::bit_cast<double>(bits);
  return std::isfinite(value) ? ordered_json(value) : ordered_json("bits " + std::to_string(bits));
}

ordered_json fact_as_json(const manifest_fact& fact) {
  ordered_json members{{"name", text_as_json(fact.name)}};
  if (fact.kind == manifest_fact::text) {
    members["text"] = text_as_json(fact.words);
    return members;
  }
  ordered_json numbers = ordered_json::array();
  for (const auto bits : fact.numbers)
    numbers.push_back(fact.kind == manifest_fact::real    ? real_as_json(bits)
                      : fact.kind == manifest_fact::whole ? ordered_json(static_cast<std::int64_t>(bits))
                                                          : ordered_json(bits));
  const char* const kind = fact.kind == manifest_fact::real    ? "f64"
                           : fact.kind == manifest_fact::whole ? "i64"
                                                               : "u64";
  members[kind] = std::move(numbers);
  return members;
}

ordered_json piece_as_json(const manifest_piece& piece) { return {piece.file, piece.offset, piece.checksum}; }

ordered_json array_as_json(const manifest_array& array) {
  ordered_json chunks = ordered_json::array();
  for (const auto& chunk : array.chunks) {
    ordered_json members = piece_as_json(chunk.piece);
    for (const auto& patch : chunk.patches) {
      ordered_json replaced = piece_as_json(patch.piece);
      replaced.push_back(patch.units);
      members.push_back(std::move(replaced));
    }
    chunks.push_back(std::move(members));
  }
  return {{"name", text_as_json(array.name)},     {"type", text_as_json(array.dtype)},
          {"element_bytes", array.element_bytes}, {"extents", array.extents},
          {"chunk_bytes", array.chunk_bytes},     {"unit_bytes", array.unit_bytes},
          {"chunks", std::move(chunks)}};
}

ordered_json body_of(const manifest& whole) {
  ordered_json files = ordered_json::array(), entries = ordered_json::array();
  for (const auto& file : whole.files) files.push_back({{"number", file.number}, {"bytes", file.bytes}});
  for (const auto& entry : whole.entries) {
    ordered_json facts = ordered_json::array(), arrays = ordered_json::array();
    for (const auto& fact : entry.facts) facts.push_back(fact_as_json(fact));
    for (const auto& array : entry.arrays) arrays.push_back(array_as_json(array));
    entries.push_back({{"name", text_as_json(entry.name)},
                       {"kind", text_as_json(entry.kind)},
                       {"facts", std::move(facts)},
                       {"arrays", std::move(arrays)}});
  }
  return {{"files", std::move(files)}, {"entries", std::move(entries)}};
}

}  // namespace

std::string encode(const manifest& of) {
  const std::string body = body_of(of).dump();
  std::string bytes(manifest_magic);
  append_number(bytes, manifest::version);
  append_number(bytes, std::uint32_t{0});
  append_number(bytes, of.number);
  append_number(bytes, static_cast<std::uint64_t>(body.size()));
  bytes += body;
  append_number(bytes, crc32c(bytes.data(), bytes.size()));
  return bytes;
}

}  // namespace ferry::detail
