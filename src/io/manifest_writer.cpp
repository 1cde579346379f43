// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/manifest_writer.hpp>

#include "crc32c.hpp"
#include "json.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {
namespace {

template <class Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Appends visit(item) of each item as a list of JSON.
template <class Items, class Visit>
void append_list(std::string& text, const Items& items, const Visit& visit) {
  text += '[';
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) text += ',';
    visit(item);
  }
  text += ']';
}

/// Names may have any bytes: those that are no UTF-8 are a list of numbers.
void append_text(std::string& bytes, std::string_view text) {
  if (valid_utf8(text) == text.size()) {
    bytes += json_quoted(text);
    return;
  }
  append_list(bytes, text, [&](char byte) { bytes += std::to_string(static_cast<unsigned char>(byte)); });
}

void append_real(std::string& text, std::uint64_t bits) {
  const auto value = std::bit_cast<double>(bits);
  // JSON has no infinities and no NaNs: these are their bits.
  text += std::isfinite(value) ? json_number(value) : "\"bits " + std::to_string(bits) + "\"";
}

void append_fact(std::string& text, const manifest_fact& fact) {
  text += R"({"name":)";
  append_text(text, fact.name);
  if (fact.kind == manifest_fact::text) {
    text += R"(,"text":)";
    append_text(text, fact.words);
  } else if (fact.kind == manifest_fact::real) {
    text += R"(,"f64":)";
    append_list(text, fact.numbers, [&](std::uint64_t bits) { append_real(text, bits); });
  } else if (fact.kind == manifest_fact::whole) {
    text += R"(,"i64":)";
    append_list(text, fact.numbers,
                [&](std::uint64_t bits) { text += std::to_string(static_cast<std::int64_t>(bits)); });
  } else {
    text += R"(,"u64":)";
    append_list(text, fact.numbers, [&](std::uint64_t bits) { text += std::to_string(bits); });
  }
  text += '}';
}

/// A piece without the end of its list.
void append_piece(std::string& text, const manifest_piece& piece) {
  text += '[' + std::to_string(piece.file) + ',' + std::to_string(piece.offset) + ',' +
          std::to_string(piece.checksum);
}

void append_chunk(std::string& text, const manifest_chunk& chunk) {
  append_piece(text, chunk.piece);
  for (const auto& patch : chunk.patches) {
    text += ',';
    append_piece(text, patch.piece);
    text += ',' + std::to_string(patch.units) + ']';
  }
  text += ']';
}

void append_array(std::string& text, const manifest_array& array) {
  text += R"({"name":)";
  append_text(text, array.name);
  text += R"(,"type":)";
  append_text(text, array.dtype);
  text += R"(,"element_bytes":)" + std::to_string(array.element_bytes) + R"(,"extents":)";
  append_list(text, array.extents, [&](std::uint64_t extent) { text += std::to_string(extent); });
  text += R"(,"chunk_bytes":)" + std::to_string(array.chunk_bytes) + R"(,"unit_bytes":)" +
          std::to_string(array.unit_bytes) + R"(,"chunks":)";
  append_list(text, array.chunks, [&](const manifest_chunk& chunk) { append_chunk(text, chunk); });
  text += '}';
}

void append_body(std::string& text, const manifest& whole) {
  text += R"({"files":)";
  append_list(text, whole.files, [&](const manifest_file& file) {
    text += R"({"number":)" + std::to_string(file.number) + R"(,"bytes":)" + std::to_string(file.bytes) + '}';
  });
  text += R"(,"entries":)";
  append_list(text, whole.entries, [&](const manifest_entry& entry) {
    text += R"({"name":)";
    append_text(text, entry.name);
    text += R"(,"kind":)";
    append_text(text, entry.kind);
    text += R"(,"facts":)";
    append_list(text, entry.facts, [&](const manifest_fact& fact) { append_fact(text, fact); });
    text += R"(,"arrays":)";
    append_list(text, entry.arrays, [&](const manifest_array& array) { append_array(text, array); });
    text += '}';
  });
  text += '}';
}

}  // namespace

std::string encode(const manifest& content) {
  std::string body;
  append_body(body, content);
  std::string bytes(manifest_magic);
  append_number(bytes, manifest::version);
  append_number(bytes, std::uint32_t{0});
  append_number(bytes, content.number);
  append_number(bytes, static_cast<std::uint64_t>(body.size()));
  bytes += body;
  append_number(bytes, crc32c(bytes.data(), bytes.size()));
  return bytes;
}

}  // namespace ferry::detail
