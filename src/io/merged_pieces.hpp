// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/piece_file.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The data files that a save of changes empties, by number. None while there is room for one file more, else
/// those of which the checkpoint needs the fewest bytes, until half of most_data_files are left. So files of
/// one size are merged when many of them have gathered, and a byte is not moved with each save.
std::vector<bool> files_to_empty(const manifest& content);

/// Moves what a chunk has in files that a save empties into the save's own file. Thread-safe.
class merged_pieces {
 public:
  /// `empties`: see files_to_empty.
  merged_pieces(std::vector<bool>&& empties, const checkpoint_files& source, piece_file& target)
      : empties_(std::move(empties)), source_(source), target_(target) {}

  /// Moves the pieces of `chunk`, which is that of the current checkpoint; patches that follow each other
  /// become one. Damaged pieces stay in their file, because load() names it. Throws if the new file can't be
  /// written.
  void move(const manifest_array& array, std::size_t place, manifest_chunk& chunk) const;

 private:
  /// True if the file of the piece is emptied.
  [[nodiscard]] bool leaves(const manifest_piece& piece) const;

  /// Writes a chunk with its patches as one piece.
  bool rewrite(const manifest_array& array, std::size_t place, manifest_chunk& chunk) const;

  /// Writes patches [first, end) as one, in the place of the first: of each unit the last.
  bool join(const manifest_array& array, std::size_t place, std::vector<manifest_patch>& patches,
            std::size_t first, std::size_t end) const;

  std::vector<bool> empties_;
  const checkpoint_files& source_;
  piece_file& target_;
};

}  // namespace ferry::detail
