// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ferry::detail {

/// Page-locked memory of one thread: a device copies fast into no other.
struct bounce_buffer {
  tensor<std::byte, pinned_space> memory;

  std::byte* room(std::size_t bytes);
};

/// The memory of a thread that reads chunks.
struct chunk_memory {
  std::vector<std::byte> bytes, scratch;
  bounce_buffer bounce;
};

/// Bytes of a patch of `units` units.
std::size_t patch_bytes(const manifest_array& array, std::size_t units);

struct save_job;
struct array_digests;
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
  /// `changes`: writes only the units whose digests differ from those of the current checkpoint. Arrays
  /// without digests there are written whole.
  checkpoint_save(const std::string& folder, const checkpoint_target& target, checkpoint_content&& content,
                  bool changes);

  checkpoint_save(const checkpoint_save&) = delete;
  checkpoint_save& operator=(const checkpoint_save&) = delete;
  ~checkpoint_save();

  [[nodiscard]] std::size_t chunks() const;
  /// Bytes of the array that the save needs of a chunk.
  [[nodiscard]] std::size_t bytes_of(std::size_t chunk) const;
  /// Copies chunks [begin, end) into memory, from which they are written later. `to` has room for all.
  void snapshot(std::size_t begin, std::size_t end, std::byte* target, int threads);
  /// Writes chunks [begin, end).
  void write(std::size_t begin, std::size_t end, int threads);
  /// Brings everything to the disk and makes it the checkpoint of its target.
  void finish();

  /// Bytes that were written.
  [[nodiscard]] std::uint64_t written() const { return data_->written(); }

 private:
  static constexpr std::uint32_t fresh = piece_file::fresh;

  void for_each_job(std::size_t begin, std::size_t end, int threads,
                    function_ref<void(save_job&, chunk_memory&)> work);
  void write_chunk(save_job& job, chunk_memory& memory);
  /// Writes the units that have changed.
  void write_units(save_job& job, chunk_memory& memory);

  /// Leaves only files in the manifest that it still needs, and the new one.
  void drop_unused_files();
  /// After an error of the last step, which may come after the rename. If nobody knows, the file stays:
  /// the next save removes it if no manifest names it.
  void remove_unless_current();

  std::string folder_;
  checkpoint_target target_;
  checkpoint_content content_;
  std::optional<folder_lock> lock_;
  manifest old_;
  manifest manifest_;
  std::unique_ptr<checkpoint_files> before_;
  std::unique_ptr<piece_file> data_;
  std::unique_ptr<merged_pieces> merged_;
  std::vector<array_digests> digests_;
  std::vector<save_job> jobs_;
};

}  // namespace ferry::detail
