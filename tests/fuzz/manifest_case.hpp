// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cstdint>
#include <cstring>
#include <string>

/// The reader of manifests on any bytes. For the fuzzer and for the test of random changes.
namespace ferry_test {

/// Makes length and checksum of the bytes right, so that changes get past them.
inline void seal_manifest(std::string& bytes) {
  const std::size_t frame = ferry::detail::manifest_header_bytes + 4;
  if (bytes.size() < frame) return;
  const std::uint64_t body = bytes.size() - frame;
  std::memcpy(bytes.data() + 24, &body, sizeof body);
  const std::uint32_t sum = ferry::detail::crc32c(bytes.data(), bytes.size() - 4);
  std::memcpy(bytes.data() + bytes.size() - 4, &sum, sizeof sum);
}

/// The flaw that these bytes showed; empty if they were refused by an io_error, or were read, and written for
/// the same to be read again.
inline std::string fault_of_manifest(const std::string& bytes, bool& accepted) {
  accepted = false;
  ferry::detail::manifest read;
  try {
    read = ferry::detail::decode(bytes, "fuzz");
  } catch (const ferry::io_error&) {
    return {};
  }
  accepted = true;
  if (ferry::detail::decode(ferry::detail::encode(read), "fuzz") != read)
    return "it is read, but written as another one";
  std::uint64_t room = 0;
  for (const auto& file : read.files) room += file.bytes;
  for (const auto& entry : read.entries)
    for (const auto& array : entry.arrays) {
      if (array.bytes() > room) return "an array is longer than the files";
      if (array.chunks.size() != array.chunk_count()) return "chunks are missing";
      for (std::size_t i = 0; i < array.chunks.size(); ++i) {
        const auto& piece = array.chunks[i].piece;
        if (piece.file >= read.files.size()) return "a piece lies in no file";
        if (piece.offset + array.bytes_of_chunk(i) > read.files[piece.file].bytes)
          return "a piece ends after its file";
      }
    }
  return {};
}

}  // namespace ferry_test
