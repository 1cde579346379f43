// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_choice.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/manifest_writer.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ferry::detail {

/// A new data file that takes pieces, from several threads. Removed unless it is kept.
class piece_file {
 public:
  /// The position of the file in the manifest, until it has one.
  static constexpr std::uint32_t fresh = 0xFFFFFFFFu;

  piece_file(const std::string& folder, std::uint64_t number) : data_(folder, number) {}

  /// Writes a piece, and computes its checksum.
  manifest_piece append(const std::byte* source, std::size_t bytes);

  /// Bytes of the file.
  [[nodiscard]] std::uint64_t size() const;
  /// Bytes of pieces.
  [[nodiscard]] std::uint64_t written() const;
  /// Brings what has been written to the disk.
  void sync() const;
  /// Brings all to the disk. No piece may follow.
  void finish();
  void keep();
  /// Frees the disk space of a file that nobody will name. Its name stays: it may be another's by now.
  void abandon() noexcept;

 private:
  static constexpr std::uint64_t alignment = 64;
  static constexpr std::size_t part_bytes = std::size_t{1} << 18;

  new_data_file data_;
  std::atomic<std::uint64_t> end_{data_header_bytes};
};

/// True if the checkpoint of a place is that of save `number`, or nobody can tell.
bool may_be_current(const std::string& folder, std::uint64_t number,
                    const checkpoint_place& place = {}) noexcept;

}  // namespace ferry::detail
