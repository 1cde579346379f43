// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_choice.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/load_options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry::detail {

/// The entries of a checkpoint, in the order in which they were added.
using checkpoint_entries = std::vector<std::unique_ptr<checkpoint_entry>>;

/// A manifest with its open files.
struct opened_checkpoint {
  manifest says;
  std::unique_ptr<checkpoint_files> files;
};

/// Opens a checkpoint. A save by another process may remove files between the two looks; then the
/// new manifest is read.
opened_checkpoint open_checkpoint(const std::string& folder, const checkpoint_choice& choice = {});

/// The place of a chunk of the file in the array: first byte, and number of elements.
struct chunk_place {
  std::uint64_t offset;
  std::size_t count;

  chunk_place(const load_step& step, std::size_t place, std::size_t bytes);
};

/// The memory of each thread of a load. What the chunks of all arrays need is taken before an object changes,
/// so a load that lacks memory changes none.
class load_memory {
 public:
  struct of_thread {
    std::vector<std::byte> bytes;     ///< of a chunk
    std::vector<std::byte> elements;  ///< its elements, converted
    std::vector<std::byte> scratch;   ///< a patch, or a span of strided rows
    std::shared_ptr<void> apart;      ///< see rows_apart::reserve
  };

  explicit load_memory(int threads) : threads_(threads) {}

  /// Takes the memory for an array.
  void reserve(const load_step& step);

  /// Calls work(memory with the bytes of the chunk, its place) for every chunk of an array that reserve() has
  /// been told of.
  void for_each_stored_chunk(const checkpoint_files& files, const load_step& step,
                             function_ref<void(of_thread&, std::size_t)> work);

 private:
  int threads_;
  std::vector<of_thread> memory_;
};

/// Lists what an entry loads from the file. Throws if the file does not fit it.
void prepare_entry(const load_source& source, const manifest& says, checkpoint_entry& entry,
                   std::vector<load_step>& steps);

/// Throws if the file has entries that were not added.
void require_all_added(const load_source& source, const manifest& says,
                       std::span<checkpoint_entry* const> entries);

/// The bytes of a chunk as elements of the array; `elements` is memory for them.
const std::byte* as_elements(const load_step& step, const std::vector<std::byte>& bytes,
                             std::vector<std::byte>& elements);

/// Reads an array of the file, and compares it with memory that is read only. Throws io_error if it is
/// damaged or differs.
void check_array(const std::string& folder, const checkpoint_files& files, const load_step& step,
                 load_memory& memory);

/// Fills an array from the file, unless it is read only. Takes no memory.
void load_array(const checkpoint_files& files, const load_step& step, load_memory& memory);

/// Loads a checkpoint into the entries: checks all of it, then changes them.
void load_checkpoint(const std::string& folder, const checkpoint_entries& entries,
                     const io::load_options& options);

}  // namespace ferry::detail
