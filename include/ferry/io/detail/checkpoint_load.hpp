// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Loads the current checkpoint into the entries: checks all of it, then changes them. Returns its manifest.
template <class Dependent = void>
manifest load_checkpoint(const std::string& folder, const late<checkpoint_entries, Dependent>& entries,
                         const io::load_options& options) {
  late<opened_checkpoint, Dependent> from = open_checkpoint(folder);
  const load_source source{folder, *from.files, options.convert};
  std::vector<late<load_step, Dependent>> steps;
  for (const auto& each : entries) {
    const manifest_entry* const stored = from.says.entry(each->name());
    if (stored == nullptr) {
      std::string names;
      for (const auto& one : from.says.entries) names += (names.empty() ? "'" : ", '") + one.name + "'";
      source.fail(each->name(), "the file has no such entry; it has " + (names.empty() ? "none" : names));
    }
    each->prepare(source, *stored, steps);
  }
  if (!options.partial)
    for (const auto& each : from.says.entries) {
      bool added = false;
      for (const auto& one : entries) added = added || one->name() == each.name;
      if (!added)
        source.fail(each.name,
                    "it is in the file, and nothing of that name was added; add it, or load with "
                    "load_options::partial");
    }
  const int threads = chunk_threads();
  for (const auto& step : steps) for_each_stored_chunk(*from.files, step, threads, [](auto&&...) {});

  // Everything fits and is intact. From here only the hardware can fail.
  for (const auto& step : steps)
    if (step.to.accesses != nullptr) step.to.accesses->wait_for_all();
  for (const auto& step : steps) {
    const auto& to = step.to;
    const marked_write marking(to.accesses, memory_of_rows(to));
    const bool converts = step.from->dtype != to.schema.dtype;
    for_each_stored_chunk(*from.files, step, threads,
                          [&](std::vector<std::byte>& bytes, std::size_t place, std::vector<std::byte>& made,
                              std::vector<std::byte>& scratch) {
                            const std::uint64_t first =
                                place * step.from->chunk_bytes / step.from->element_bytes;
                            const std::size_t count = bytes.size() / step.from->element_bytes;
                            if (converts) {
                              made.resize(count * to.schema.element_bytes);
                              to.convert(step.from->dtype, bytes.data(), made.data(), count);
                            }
                            to.write(first * to.schema.element_bytes, count * to.schema.element_bytes,
                                     converts ? made.data() : bytes.data(), scratch);
                          });
  }
  for (const auto& each : entries) each->commit();
  return std::move(from.says);
}

}  // namespace ferry::detail
