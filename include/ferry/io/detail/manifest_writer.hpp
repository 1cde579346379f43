// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/crc32c.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/late.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

/// The bytes of a manifest: little-endian numbers, texts with their length before them.
namespace ferry::detail {

static_assert(std::endian::native == std::endian::little,
              "ferry: checkpoints are written and read by little-endian machines only.");

inline constexpr std::string_view manifest_magic = "ferryckp";
inline constexpr std::size_t manifest_header_bytes = 32;
inline constexpr std::uint64_t data_header_bytes = 4096;
/// Chunks are buffers in memory while a checkpoint is read, so a file can't name larger ones.
inline constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 26;

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

/// The file's bytes. Texts are at most 65535 bytes long, see require_name.
template <class Dependent = void>
std::string encode(const late<manifest, Dependent>& of) {
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
