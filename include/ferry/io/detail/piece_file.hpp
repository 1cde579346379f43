// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/crc32c.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ferry::detail {

/// A new data file that takes pieces, from several threads. Removed unless it is kept.
template <class Dependent>
class basic_piece_file {
 public:
  /// The position of the file in the manifest, until it has one.
  static constexpr std::uint32_t fresh = 0xFFFFFFFFu;

  basic_piece_file(const std::string& folder, std::uint64_t number) : data_(folder, number) {}

  /// Writes a piece, and computes its checksum.
  manifest_piece append(const std::byte* from, std::size_t bytes) {
    manifest_piece made;
    made.file = fresh;
    made.offset = end_.fetch_add((bytes + alignment - 1) / alignment * alignment);
    // Small parts are still in the cache when they are written.
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t count = std::min(part_bytes, bytes - done);
      made.checksum = crc32c(from + done, count, made.checksum);
      data_.content().write_at(from + done, count, made.offset + done);
      done += count;
    }
    data_.content().start_write_back(made.offset, bytes);
    return made;
  }

  /// Bytes of the file.
  [[nodiscard]] std::uint64_t size() const { return data_.content().size(); }
  /// Bytes of pieces.
  [[nodiscard]] std::uint64_t written() const { return end_.load() - data_header_bytes; }
  /// Brings what has been written to the disk.
  void sync() const { data_.content().sync(); }
  /// Brings all to the disk. No piece may follow.
  void finish() { data_.finish(); }
  void keep() { data_.keep(); }
  /// Frees the disk space of a file that nobody will name. Its name stays: it may be another's by now.
  void abandon() noexcept {
    if (!data_.content().is_open()) return;
    [[maybe_unused]] const int done = ::ftruncate(data_.content().descriptor(), 0);
  }

 private:
  static constexpr std::uint64_t alignment = 64;
  static constexpr std::size_t part_bytes = std::size_t{1} << 18;

  new_data_file data_;
  std::atomic<std::uint64_t> end_{data_header_bytes};
};
using piece_file = basic_piece_file<void>;

/// Whether the current checkpoint is that of save `number`, or nobody can tell.
template <class Dependent = void>
bool may_be_current(const std::string& folder, std::uint64_t number) noexcept {
  try {
    bool missing = false;
    return read_manifest(folder, &missing).number == number && !missing;
  } catch (...) {
    return true;
  }
}

}  // namespace ferry::detail
