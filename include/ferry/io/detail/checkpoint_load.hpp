// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/save_job.hpp>
#include <ferry/io/load_options.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/runtime/detail/change_marks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The entries of a checkpoint, in the order in which they were added.
using checkpoint_entries = std::vector<owned<checkpoint_entry>>;

/// A manifest with its open files.
struct opened_checkpoint {
  manifest says;
  owned<checkpoint_files> files;
};

/// Opens the current checkpoint. A save by another process may remove files between the two looks; then the
/// new manifest is read.
template <class Dependent = void>
opened_checkpoint open_checkpoint(const std::string& folder) {
  late<opened_checkpoint, Dependent> made;
  for (int tries = 0; tries < 8; ++tries) {
    bool gone = false;
    made.says = read_manifest(folder);
    made.files = make_owned<checkpoint_files>(folder, made.says, tries < 7 ? &gone : nullptr);
    if (!gone) break;
  }
  return made;
}

/// Where a chunk of the file lies in the array: first byte, and number of elements.
struct chunk_place {
  std::uint64_t offset;
  std::size_t count;

  chunk_place(const load_step& step, std::size_t place, std::size_t bytes)
      : offset(place * step.from->chunk_bytes / step.from->element_bytes * step.to.schema.element_bytes),
        count(bytes / step.from->element_bytes) {}
};

/// The memory of each thread of a load. What the chunks of all arrays need is taken before an object changes,
/// so a load that lacks memory changes none.
template <class Dependent>
class basic_load_memory {
  using load_step = late<detail::load_step, Dependent>;
  using chunk_place = late<detail::chunk_place, Dependent>;

 public:
  struct of_thread {
    std::vector<std::byte> bytes;    ///< of a chunk
    std::vector<std::byte> made;     ///< its elements, converted
    std::vector<std::byte> scratch;  ///< a patch, or a span of strided rows
    std::shared_ptr<void> apart;     ///< see rows_apart::reserve
  };

  explicit basic_load_memory(int threads) : threads_(threads) {}

  /// Takes the memory for an array, and begins the writes to it: from here on it is marked as changed when
  /// this object ends.
  void reserve(const load_step& step) {
    const std::size_t chunks = step.from->chunks.size();
    const auto team = std::min(chunks, static_cast<std::size_t>(std::max(1, threads_)));
    if (memory_.size() < team) memory_.resize(team);
    std::size_t bytes = 0, made = 0, scratch = 0, written = 0;
    for (std::size_t place = 0; place < chunks; ++place) {
      const auto stored = static_cast<std::size_t>(step.from->bytes_of_chunk(place));
      const chunk_place at(step, place, stored);
      const std::size_t length = at.count * step.to.schema.element_bytes;
      bytes = std::max(bytes, stored);
      written = std::max(written, length);
      if (step.from->dtype != step.to.schema.dtype) made = std::max(made, length);
      for (const auto& each : step.from->chunks[place].patches)
        scratch = std::max(scratch, patch_bytes(*step.from, each.units));
    }
    scratch = std::max(scratch, step.to.most_scratch_bytes(written));
    for (std::size_t i = 0; i < team; ++i) {
      memory_[i].bytes.reserve(bytes);
      memory_[i].made.reserve(made);
      memory_[i].scratch.reserve(scratch);
      if (step.to.apart != nullptr) step.to.apart->reserve(memory_[i].apart, written);
    }
    marking_.push_back(make_owned<marked_write>(step.to.accesses, memory_of_rows(step.to)));
  }

  /// Calls work(memory with the bytes of the chunk, its place) for every chunk of an array that reserve() has
  /// been told of.
  template <class Files, class Work>
  void for_each_stored_chunk(const Files& files, const load_step& step, const Work& work) {
    std::atomic<std::size_t> next{0};
    for_each_chunk(step.from->chunks.size(), threads_, [&] {
      return [&, &own = memory_[next++]](std::size_t place) {
        own.bytes.resize(static_cast<std::size_t>(step.from->bytes_of_chunk(place)));
        files.read_chunk(*step.from, place, own.bytes.data(), own.scratch, step.what);
        work(own, place);
      };
    });
  }

 private:
  int threads_;
  std::vector<of_thread> memory_;
  std::vector<owned<marked_write>> marking_;
};
using load_memory = basic_load_memory<void>;

/// Lists what an entry loads from the file. Throws where the file does not fit it.
template <class Dependent = void>
void prepare_entry(const load_source& source, const manifest& says, checkpoint_entry& entry,
                   std::vector<load_step>& steps) {
  const manifest_entry* const stored = says.entry(entry.name());
  if (stored == nullptr) {
    std::string names;
    for (const auto& one : says.entries) names += (names.empty() ? "'" : ", '") + one.name + "'";
    source.fail(entry.name(), "the file has no such entry; it has " + (names.empty() ? "none" : names));
  }
  entry.prepare(source, *stored, steps);
}

/// Throws where the file has entries that were not added.
template <class Entries>
void require_all_added(const load_source& source, const manifest& says, const Entries& entries) {
  for (const auto& each : says.entries) {
    bool added = false;
    for (const auto& one : entries) added = added || one->name() == each.name;
    if (!added)
      source.fail(each.name,
                  "it is in the file, and nothing of that name was added; add it, or load with "
                  "load_options::partial");
  }
}

/// The bytes of a chunk as elements of the array; `made` is memory for them.
template <class...>
const std::byte* as_elements(const load_step& step, const std::vector<std::byte>& bytes,
                             std::vector<std::byte>& made) {
  if (step.from->dtype == step.to.schema.dtype) return bytes.data();
  const std::size_t count = bytes.size() / step.from->element_bytes;
  made.resize(count * step.to.schema.element_bytes);
  step.to.convert(step.from->dtype, bytes.data(), made.data(), count);
  return made.data();
}

/// Fills an array from the file. Takes no memory.
template <class Dependent = void>
void load_array(const checkpoint_files& files, const load_step& step, late<load_memory, Dependent>& memory) {
  const auto& to = step.to;
  memory.for_each_stored_chunk(files, step, [&](auto& own, std::size_t place) {
    const chunk_place at(step, place, own.bytes.size());
    const std::size_t length = at.count * to.schema.element_bytes;
    const std::byte* const elements = as_elements(step, own.bytes, own.made);
    if (to.apart != nullptr)
      to.apart->write(at.offset, length, elements, own.apart);
    else
      to.write(at.offset, length, elements, own.scratch);
  });
}

/// Loads the current checkpoint into the entries: checks all of it, then changes them. Returns its manifest.
template <class Dependent = void>
manifest load_checkpoint(const std::string& folder, const late<checkpoint_entries, Dependent>& entries,
                         const io::load_options& options) {
  late<opened_checkpoint, Dependent> from = open_checkpoint(folder);
  const load_source source{folder, *from.files, options.convert};
  std::vector<late<load_step, Dependent>> steps;
  for (const auto& each : entries) prepare_entry(source, from.says, *each, steps);
  if (!options.partial) require_all_added(source, from.says, entries);
  for (const auto& step : steps)
    if (step.to.accesses != nullptr) step.to.accesses->wait_for_all();
  late<load_memory, Dependent> memory(chunk_threads());
  for (const auto& step : steps) memory.reserve(step);
  for (const auto& step : steps) memory.for_each_stored_chunk(*from.files, step, [](auto&&...) {});

  // Everything fits and is intact, and the memory is there. From here only the hardware can fail.
  for (const auto& step : steps) load_array(*from.files, step, memory);
  for (const auto& each : entries) each->commit();
  return std::move(from.says);
}

}  // namespace ferry::detail
