// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/piece_file.hpp>
#include <ferry/io/detail/save_job.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ferry::detail {

class merged_pieces;

/// The content of a save: entries, whose arrays have no chunks yet, and the arrays' memory in the same order.
struct checkpoint_content {
  std::vector<manifest_entry> entries;
  std::vector<checkpoint_array> arrays;
};

/// One save, from its content to the new manifest. The chunks may be written in several calls and from
/// several threads. Nothing that exists is changed before finish(); without it the new file is removed.
class checkpoint_save {
 public:
  /// `changes`: writes only what differs from the current checkpoint. Where that is `base`, the changed rows
  /// of the arrays tell; all else is compared.
  checkpoint_save(const std::string& folder, const checkpoint_place& home, checkpoint_content&& content,
                  bool changes, const manifest* base = nullptr);

  checkpoint_save(const checkpoint_save&) = delete;
  checkpoint_save& operator=(const checkpoint_save&) = delete;
  ~checkpoint_save();

  [[nodiscard]] std::size_t chunks() const { return jobs_.size(); }
  /// Bytes of the array that the save needs of a chunk.
  [[nodiscard]] std::size_t bytes_of(std::size_t chunk) const;
  /// Copies chunks [begin, end) into memory, from which they are written later. `to` has room for all.
  void snapshot(std::size_t begin, std::size_t end, std::byte* target, int threads);
  /// Writes chunks [begin, end).
  void write(std::size_t begin, std::size_t end, int threads);
  /// Brings everything to the disk and makes it the checkpoint of its place.
  void finish();

  /// True if it becomes a named checkpoint, which is no generation.
  [[nodiscard]] bool is_named() const { return !place_.name.empty(); }
  /// After finish(): the new checkpoint.
  [[nodiscard]] manifest& new_manifest() { return manifest_; }
  /// Bytes that were written.
  [[nodiscard]] std::uint64_t written() const { return data_->written(); }

 private:
  static constexpr std::uint32_t fresh = piece_file::fresh;

  struct buffers;

  static bool is_like(const manifest_array& a, const manifest_array& b);
  /// The current manifest. One that can't be read is refused: it may be a newer ferry's.
  [[nodiscard]] manifest read_old(bool changes) const;

  void write_chunk(const save_job& job, buffers& memory);

  /// Writes the units that differ from the current checkpoint. False if the whole chunk had better be
  /// written: most of it has changed, its patches would outgrow half of it, or the old bytes are damaged.
  bool write_changes(const save_job& job, const std::byte* now, std::size_t bytes, buffers& memory,
                     manifest_chunk& chunk);
  /// Writes the units that are known to have changed.
  void write_units(const save_job& job, buffers& memory);
  /// The memory for the units of a patch, after their positions.
  static std::byte* begin_patch(const save_job& job, const std::vector<std::uint32_t>& units,
                                buffers& memory);
  void append_patch(const buffers& memory, std::size_t units, manifest_chunk& chunk);

  template <class Visit>
  void for_each_piece_made(const Visit& visit) {
    for (auto& entry : manifest_.entries)
      for (auto& array : entry.arrays)
        for (auto& chunk : array.chunks) {
          visit(chunk.piece);
          for (auto& patch : chunk.patches) visit(patch.piece);
        }
  }
  /// Leaves only files in the manifest that it still needs, and the new one.
  void drop_unused_files();
  /// After an error of the last step, which may come after the rename. Where nobody can tell, the file stays:
  /// the next save removes it if no manifest names it.
  void remove_unless_current();

  std::string folder_;
  checkpoint_place place_;
  checkpoint_content content_;
  std::optional<folder_lock> lock_;
  manifest old_;
  manifest manifest_;
  std::unique_ptr<checkpoint_files> before_;
  std::unique_ptr<piece_file> data_;
  std::unique_ptr<merged_pieces> merged_;
  std::vector<save_job> jobs_;
};

}  // namespace ferry::detail
