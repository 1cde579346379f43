// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/load_options.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/runtime/detail/change_marks.hpp>

#include <cstddef>
#include <cstdint>
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

/// Calls work(bytes of chunk, its place, buffers) for every chunk of an array, with the chunk's bytes.
template <class Work>
void for_each_stored_chunk(const checkpoint_files& files, const load_step& step, int threads,
                           const Work& work) {
  for_each_chunk(step.from->chunks.size(), threads, [&] {
    return [&, bytes = std::vector<std::byte>(), scratch = std::vector<std::byte>(),
            made = std::vector<std::byte>()](std::size_t place) mutable {
      bytes.resize(static_cast<std::size_t>(step.from->bytes_of_chunk(place)));
      files.read_chunk(*step.from, place, bytes.data(), scratch, step.what);
      work(bytes, place, made, scratch);
    };
  });
}

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

/// Where a chunk of the file lies in the array: first byte, and number of elements.
struct chunk_place {
  std::uint64_t offset;
  std::size_t count;

  chunk_place(const load_step& step, std::size_t place, std::size_t bytes)
      : offset(place * step.from->chunk_bytes / step.from->element_bytes * step.to.schema.element_bytes),
        count(bytes / step.from->element_bytes) {}
};

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

/// Fills an array from the file.
template <class...>
void load_array(const checkpoint_files& files, const load_step& step, int threads) {
  const auto& to = step.to;
  const marked_write marking(to.accesses, memory_of_rows(to));
  for_each_stored_chunk(files, step, threads,
                        [&](std::vector<std::byte>& bytes, std::size_t place, std::vector<std::byte>& made,
                            std::vector<std::byte>& scratch) {
                          const chunk_place at(step, place, bytes.size());
                          to.write(at.offset, at.count * to.schema.element_bytes,
                                   as_elements(step, bytes, made), scratch);
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
  const int threads = chunk_threads();
  for (const auto& step : steps) for_each_stored_chunk(*from.files, step, threads, [](auto&&...) {});

  // Everything fits and is intact. From here only the hardware can fail.
  for (const auto& step : steps)
    if (step.to.accesses != nullptr) step.to.accesses->wait_for_all();
  for (const auto& step : steps) load_array(*from.files, step, threads);
  for (const auto& each : entries) each->commit();
  return std::move(from.says);
}

}  // namespace ferry::detail
