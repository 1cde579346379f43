// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_load.hpp>

#include "value_words.hpp"

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/save_job.hpp>
#include <ferry/io/load_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

opened_checkpoint open_checkpoint(const std::string& folder, const checkpoint_choice& choice) {
  opened_checkpoint checkpoint;
  for (int tries = 0; tries < 8; ++tries) {
    bool gone = false;
    checkpoint.says = read_manifest(folder, nullptr, choice);
    checkpoint.files =
        std::make_unique<checkpoint_files>(folder, checkpoint.says, tries < 7 ? &gone : nullptr);
    if (!gone) break;
  }
  return checkpoint;
}

chunk_place::chunk_place(const load_step& step, std::size_t place, std::size_t bytes)
    : offset(place * step.stored->chunk_bytes / step.stored->element_bytes *
             step.target.schema.element_bytes),
      count(bytes / step.stored->element_bytes) {}

void load_memory::reserve(const load_step& step) {
  const std::size_t chunks = step.stored->chunks.size();
  const auto team = std::min(chunks, static_cast<std::size_t>(std::max(1, threads_)));
  if (memory_.size() < team) memory_.resize(team);
  std::size_t bytes = 0, elements = 0, scratch = 0, written = 0;
  for (std::size_t place = 0; place < chunks; ++place) {
    const auto stored = static_cast<std::size_t>(step.stored->bytes_of_chunk(place));
    const chunk_place chunk(step, place, stored);
    const std::size_t length = chunk.count * step.target.schema.element_bytes;
    bytes = std::max(bytes, stored);
    written = std::max(written, length);
    if (step.stored->dtype != step.target.schema.dtype) elements = std::max(elements, length);
    for (const auto& patch : step.stored->chunks[place].patches)
      scratch = std::max(scratch, patch_bytes(*step.stored, patch.units));
  }
  scratch = std::max(scratch, step.target.most_scratch_bytes(written));
  for (std::size_t i = 0; i < team; ++i) {
    memory_[i].bytes.reserve(bytes);
    memory_[i].elements.reserve(elements);
    memory_[i].scratch.reserve(scratch);
    if (step.target.apart != nullptr) step.target.apart->reserve(memory_[i].apart, written);
  }
}

void load_memory::for_each_stored_chunk(const checkpoint_files& files, const load_step& step,
                                        function_ref<void(of_thread&, std::size_t)> work) {
  const auto chunk_count = static_cast<std::int64_t>(step.stored->chunks.size());
  parallel(chunk_count, 1, threads_for_chunks(threads_), [&](front_queue& chunks, int thread) {
    of_thread& memory = memory_[static_cast<std::size_t>(thread)];
    for (std::size_t place = 0; chunks.take(place);) {
      memory.bytes.resize(static_cast<std::size_t>(step.stored->bytes_of_chunk(place)));
      files.read_chunk(*step.stored, place, memory.bytes.data(), memory.scratch, step.label);
      work(memory, place);
    }
  });
}

void prepare_entry(const load_source& source, const manifest& says, checkpoint_entry& entry,
                   std::vector<load_step>& steps) {
  const manifest_entry* const stored = says.entry(entry.name());
  if (stored == nullptr) {
    std::string names;
    for (const auto& listed : says.entries) names += (names.empty() ? "'" : ", '") + listed.name + "'";
    source.fail(entry.name(), "the file has no such entry; it has " + (names.empty() ? "none" : names));
  }
  entry.prepare(source, *stored, steps);
}

void require_all_added(const load_source& source, const manifest& says,
                       std::span<checkpoint_entry* const> entries) {
  for (const auto& stored : says.entries)
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const checkpoint_entry* entry) { return entry->name() == stored.name; }))
      source.fail(stored.name,
                  "it is in the file, and nothing of that name was added; add it, or load with "
                  "load_options::partial");
}

const std::byte* as_elements(const load_step& step, const std::vector<std::byte>& bytes,
                             std::vector<std::byte>& elements) {
  if (step.stored->dtype == step.target.schema.dtype) return bytes.data();
  const std::size_t count = bytes.size() / step.stored->element_bytes;
  elements.resize(count * step.target.schema.element_bytes);
  step.target.convert(step.stored->dtype, bytes.data(), elements.data(), count);
  return elements.data();
}

void check_array(const std::string& folder, const checkpoint_files& files, const load_step& step,
                 load_memory& memory) {
  const auto& target = step.target;
  if (!target.read_only) return memory.for_each_stored_chunk(files, step, [](auto&&...) {});
  memory.for_each_stored_chunk(files, step, [&](load_memory::of_thread& buffers, std::size_t place) {
    const std::size_t bytes = target.schema.element_bytes;
    const chunk_place chunk(step, place, buffers.bytes.size());
    const std::span loaded(as_elements(step, buffers.bytes, buffers.elements), chunk.count * bytes);
    std::vector<std::byte> present(loaded.size());
    target.read(chunk.offset, present.size(), present.data(), buffers.scratch);
    if (std::memcmp(loaded.data(), present.data(), present.size()) == 0) return;
    const auto first = static_cast<std::size_t>(chunk.offset / bytes);
    throw_io_error("checkpoint", folder,
                   step.label + ": " + differing_elements(target.schema, first, loaded, present) +
                       compared_because_const);
  });
}

void load_array(const checkpoint_files& files, const load_step& step, load_memory& memory) {
  const auto& target = step.target;
  if (target.read_only) return;
  memory.for_each_stored_chunk(files, step, [&](load_memory::of_thread& buffers, std::size_t place) {
    const chunk_place chunk(step, place, buffers.bytes.size());
    const std::size_t length = chunk.count * target.schema.element_bytes;
    const std::byte* const elements = as_elements(step, buffers.bytes, buffers.elements);
    if (target.apart != nullptr)
      target.apart->write(chunk.offset, length, elements, buffers.apart);
    else
      target.write(chunk.offset, length, elements, buffers.scratch);
  });
}

void load_checkpoint(const std::string& folder, const checkpoint_entries& entries,
                     const io::load_options& options) {
  const opened_checkpoint checkpoint = open_checkpoint(folder, {options.generation, options.name});
  const load_source source{folder, *checkpoint.files, options.convert};
  std::vector<load_step> steps;
  for (const auto& entry : entries) prepare_entry(source, checkpoint.says, *entry, steps);
  if (!options.partial) {
    std::vector<checkpoint_entry*> added;
    for (const auto& entry : entries) added.push_back(entry.get());
    require_all_added(source, checkpoint.says, added);
  }
  for (const auto& step : steps)
    if (step.target.accesses != nullptr) step.target.accesses->wait_for_all();
  load_memory memory(chunk_threads());
  for (const auto& step : steps) memory.reserve(step);
  for (const auto& step : steps) check_array(folder, *checkpoint.files, step, memory);

  // Everything fits and is intact, and the memory is there. From here only the hardware can fail.
  for (const auto& step : steps) load_array(*checkpoint.files, step, memory);
  for (const auto& entry : entries) entry->commit();
}

}  // namespace ferry::detail
