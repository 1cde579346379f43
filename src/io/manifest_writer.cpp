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
void append_list(std::string& to, const Items& items, const Visit& visit) {
  to += '[';
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) to += ',';
    visit(item);
  }
  to += ']';
}

/// Names may have any bytes: those that are no UTF-8 are a list of numbers.
void append_text(std::string& to, std::string_view text) {
  if (valid_utf8(text) == text.size()) {
    to += json_quoted(text);
    return;
  }
  append_list(to, text, [&](char byte) { to += std::to_string(static_cast<unsigned char>(byte)); });
}

void append_real(std::string& to, std::uint64_t bits) {
  const auto value = std::bit_cast<double>(bits);
  // JSON has no infinities and no NaNs: these are their bits.
  to += std::isfinite(value) ? json_number(value) : "\"bits " + std::to_string(bits) + "\"";
}

void append_fact(std::string& to, const manifest_fact& fact) {
  to += R"({"name":)";
  append_text(to, fact.name);
  if (fact.kind == manifest_fact::text) {
    to += R"(,"text":)";
    append_text(to, fact.words);
  } else if (fact.kind == manifest_fact::real) {
    to += R"(,"f64":)";
    append_list(to, fact.numbers, [&](std::uint64_t bits) { append_real(to, bits); });
  } else if (fact.kind == manifest_fact::whole) {
    to += R"(,"i64":)";
    append_list(to, fact.numbers,
                [&](std::uint64_t bits) { to += std::to_string(static_cast<std::int64_t>(bits)); });
  } else {
    to += R"(,"u64":)";
    append_list(to, fact.numbers, [&](std::uint64_t bits) { to += std::to_string(bits); });
  }
  to += '}';
}

/// A piece without the end of its list.
void append_piece(std::string& to, const manifest_piece& piece) {
  to += '[' + std::to_string(piece.file) + ',' + std::to_string(piece.offset) + ',' +
        std::to_string(piece.checksum);
}

void append_chunk(std::string& to, const manifest_chunk& chunk) {
  append_piece(to, chunk.piece);
  for (const auto& patch : chunk.patches) {
    to += ',';
    append_piece(to, patch.piece);
    to += ',' + std::to_string(patch.units) + ']';
  }
  to += ']';
}

void append_array(std::string& to, const manifest_array& array) {
  to += R"({"name":)";
  append_text(to, array.name);
  to += R"(,"type":)";
  append_text(to, array.dtype);
  to += R"(,"element_bytes":)" + std::to_string(array.element_bytes) + R"(,"extents":)";
  append_list(to, array.extents, [&](std::uint64_t extent) { to += std::to_string(extent); });
  to += R"(,"chunk_bytes":)" + std::to_string(array.chunk_bytes) + R"(,"unit_bytes":)" +
        std::to_string(array.unit_bytes) + R"(,"chunks":)";
  append_list(to, array.chunks, [&](const manifest_chunk& chunk) { append_chunk(to, chunk); });
  to += '}';
}

void append_body(std::string& to, const manifest& whole) {
  to += R"({"files":)";
  append_list(to, whole.files, [&](const manifest_file& file) {
    to += R"({"number":)" + std::to_string(file.number) + R"(,"bytes":)" + std::to_string(file.bytes) + '}';
  });
  to += R"(,"entries":)";
  append_list(to, whole.entries, [&](const manifest_entry& entry) {
    to += R"({"name":)";
    append_text(to, entry.name);
    to += R"(,"kind":)";
    append_text(to, entry.kind);
    to += R"(,"facts":)";
    append_list(to, entry.facts, [&](const manifest_fact& fact) { append_fact(to, fact); });
    to += R"(,"arrays":)";
    append_list(to, entry.arrays, [&](const manifest_array& array) { append_array(to, array); });
    to += '}';
  });
  to += '}';
}

}  // namespace

std::string encode(const manifest& of) {
  std::string body;
  append_body(body, of);
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
