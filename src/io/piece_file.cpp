// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/piece_file.hpp>

#include "crc32c.hpp"

#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ferry::detail {

manifest_piece piece_file::append(const std::byte* source, std::size_t bytes) {
  manifest_piece piece;
  piece.file = fresh;
  piece.offset = end_.fetch_add((bytes + alignment - 1) / alignment * alignment);
  // Small parts are still in the cache when they are written.
  for (std::size_t position = 0; position < bytes;) {
    const std::size_t count = std::min(part_bytes, bytes - position);
    piece.checksum = crc32c(source + position, count, piece.checksum);
    data_.content().write_at(source + position, count, piece.offset + position);
    position += count;
  }
  data_.content().start_write_back(piece.offset, bytes);
  return piece;
}

std::uint64_t piece_file::size() const { return data_.content().size(); }

std::uint64_t piece_file::written() const { return end_.load() - data_header_bytes; }

void piece_file::sync() const { data_.content().sync(); }

void piece_file::finish() { data_.finish(); }

void piece_file::keep() { data_.keep(); }

void piece_file::abandon() noexcept {
  if (!data_.content().is_open()) return;
  [[maybe_unused]] const int result = ::ftruncate(data_.content().descriptor(), 0);
}

bool may_be_current(const std::string& folder, std::uint64_t number, const checkpoint_place& place) noexcept {
  try {
    bool missing = false;
    return read_manifest(folder, &missing, {0, place.name}).number == number && !missing;
  } catch (...) {
    return true;
  }
}

}  // namespace ferry::detail
