// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/manifest_writer.hpp>

#include "crc32c.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {
namespace {

/// Appends numbers and texts.
class manifest_writer {
 public:
  std::string bytes;

  template <class Number>
  void put(Number number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void put_text(std::string_view text) {
    put(static_cast<std::uint16_t>(text.size()));
    bytes.append(text);
  }
  void put_count(std::size_t count) { put(static_cast<std::uint32_t>(count)); }
  void put_piece(const manifest_piece& piece) {
    put(piece.file);
    put(piece.offset);
    put(piece.checksum);
  }
};

}  // namespace

std::string encode(const manifest& of) {
  manifest_writer to;
  to.bytes.append(manifest_magic);
  to.put(manifest::version);
  to.put(std::uint32_t{0});
  to.put(of.number);
  to.put(std::uint64_t{0});  // bytes of the body, set below
  to.put_count(of.files.size());
  for (const auto& one : of.files) {
    to.put(one.number);
    to.put(one.bytes);
  }
  to.put_count(of.entries.size());
  for (const auto& entry : of.entries) {
    to.put_text(entry.name);
    to.put_text(entry.kind);
    to.put_count(entry.facts.size());
    for (const auto& fact : entry.facts) {
      to.put_text(fact.name);
      to.put(static_cast<std::uint8_t>(fact.kind));
      if (fact.kind == manifest_fact::text) {
        to.put_text(fact.words);
      } else {
        to.put_count(fact.numbers.size());
        for (const auto number : fact.numbers) to.put(number);
      }
    }
    to.put_count(entry.arrays.size());
    for (const auto& array : entry.arrays) {
      to.put_text(array.name);
      to.put_text(array.dtype);
      to.put(array.element_bytes);
      to.put(static_cast<std::uint8_t>(array.extents.size()));
      for (const auto extent : array.extents) to.put(extent);
      to.put(array.chunk_bytes);
      to.put(array.unit_bytes);
      to.put_count(array.chunks.size());
      for (const auto& chunk : array.chunks) {
        to.put_piece(chunk.piece);
        to.put_count(chunk.patches.size());
        for (const auto& patch : chunk.patches) {
          to.put_piece(patch.piece);
          to.put(patch.units);
        }
      }
    }
  }
  const std::uint64_t body = to.bytes.size() - manifest_header_bytes;
  std::memcpy(to.bytes.data() + manifest_header_bytes - sizeof body, &body, sizeof body);
  to.put(crc32c(to.bytes.data(), to.bytes.size()));
  return std::move(to.bytes);
}

}  // namespace ferry::detail
