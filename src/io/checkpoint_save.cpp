// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_save.hpp>

#include "merged_pieces.hpp"

#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/manifest_writer.hpp>
#include <ferry/io/detail/piece_file.hpp>
#include <ferry/io/detail/save_job.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {
namespace {

/// True if a manifest stays short enough with one patch more for each chunk.
bool has_room_for_patches(const manifest& content) {
  // Bytes of a piece with the number of one of 999 files, a place within petabytes, and units of one byte.
  constexpr std::uint64_t most_bytes = 44;
  std::uint64_t pieces = 0;
  for (const auto& entry : content.entries)
    for (const auto& array : entry.arrays)
      for (const auto& chunk : array.chunks) pieces += chunk.patches.size() + 2;
  return pieces <= longest_manifest / most_bytes;
}

}  // namespace

struct checkpoint_save::buffers {
  std::vector<std::byte> now, old, patch, scratch;
  std::vector<std::uint32_t> changed;
  bounce_buffer bounce;
};

checkpoint_save::checkpoint_save(const std::string& folder, const checkpoint_place& home,
                                 checkpoint_content&& content, bool changes, const manifest* base)
    : folder_(folder), place_(home), content_(std::move(content)) {
  make_folder(folder);
  lock_.emplace(folder);
  old_ = read_old(changes);
  changes = changes && has_room_for_patches(old_);
  remove_leftovers(folder, old_);
  manifest_.number = next_number(folder, old_);
  // The new file comes after all old ones; old ones that are no longer needed are dropped by finish().
  if (changes) {
    manifest_.files = old_.files;
    before_ = std::make_unique<checkpoint_files>(folder, old_);
  }
  data_ = std::make_unique<piece_file>(folder, manifest_.number);
  if (changes) merged_ = std::make_unique<merged_pieces>(files_to_empty(old_), *before_, *data_);
  const bool by_rows = changes && base != nullptr && old_ == *base;
  std::size_t index = 0;
  for (auto& entry : content_.entries) {
    const manifest_entry* const was = changes ? old_.entry(entry.name) : nullptr;
    for (auto& array : entry.arrays) {
      const manifest_array* like = was == nullptr ? nullptr : was->array(array.name);
      if (like != nullptr && !is_like(*like, array)) like = nullptr;
      array.chunks.resize(static_cast<std::size_t>(array.chunk_count()));
      for (std::size_t place = 0; place < array.chunks.size(); ++place) {
        jobs_.push_back({&array, like, &content_.arrays[index], place});
        if (by_rows && like != nullptr && content_.arrays[index].changed != nullptr)
          jobs_.back().use(*content_.arrays[index].changed);
      }
      ++index;
    }
  }
}

checkpoint_save::~checkpoint_save() = default;

std::size_t checkpoint_save::bytes_of(std::size_t chunk) const { return jobs_[chunk].bytes(); }

void checkpoint_save::snapshot(std::size_t begin, std::size_t end, std::byte* target, int threads) {
  std::vector<std::size_t> places;
  std::size_t place = 0;
  for (std::size_t i = begin; i < end; place += bytes_of(i++)) places.push_back(place);
  parallel(static_cast<std::int64_t>(end - begin), 1, threads_for_chunks(threads),
           [&](front_queue& chunks, int) {
             std::vector<std::byte> scratch;
             bounce_buffer bounce;
             for (std::size_t i = 0; chunks.take(i);) {
               save_job& job = jobs_[begin + i];
               const std::size_t bytes = job.bytes();
               if (job.units) {
                 job.read_units(target + places[i], bounce, scratch);
               } else if (job.source->read_device != nullptr) {
                 std::byte* const room = bounce.room(bytes);
                 job.source->read(job.offset(), bytes, room, scratch);
                 std::memcpy(target + places[i], room, bytes);
               } else {
                 job.source->read(job.offset(), bytes, target + places[i], scratch);
               }
               job.snapshot = target + places[i];
             }
           });
}

void checkpoint_save::write(std::size_t begin, std::size_t end, int threads) {
  parallel(static_cast<std::int64_t>(end - begin), 1, threads_for_chunks(threads),
           [&](front_queue& chunks, int) {
             buffers scratch;
             for (std::size_t i = 0; chunks.take(i);) write_chunk(jobs_[begin + i], scratch);
           });
}

void checkpoint_save::finish() {
  const auto file = static_cast<std::uint32_t>(manifest_.files.size());
  // An empty file says nothing; it keeps a save of no bytes like any other.
  manifest_.files.push_back({manifest_.number, data_->size()});
  for (auto& job : jobs_) {
    manifest_chunk& chunk = job.target->chunks[job.place];
    if (chunk.piece.file == fresh) chunk.piece.file = file;
    for (auto& patch : chunk.patches)
      if (patch.piece.file == fresh) patch.piece.file = file;
  }
  manifest_.entries = content_.entries;
  drop_unused_files();
  data_->finish();
  data_->keep();
  try {
    write_manifest(folder_, manifest_, place_);
  } catch (...) {
    remove_unless_current();
    throw;
  }
  merged_.reset();
  before_ = nullptr;
  remove_generations(folder_, manifest_, place_);
  remove_leftovers(folder_, manifest_);
}

bool checkpoint_save::is_like(const manifest_array& a, const manifest_array& b) {
  return a.dtype == b.dtype && a.element_bytes == b.element_bytes && a.extents == b.extents &&
         a.chunk_bytes == b.chunk_bytes && a.unit_bytes == b.unit_bytes;
}

manifest checkpoint_save::read_old(bool changes) const {
  bool missing = false;
  manifest latest = read_manifest(folder_, &missing);
  if (missing && changes)
    throw_io_error("checkpoint", folder_,
                   "it holds no checkpoint yet, so changes can't be saved; save everything first");
  return latest;
}

void checkpoint_save::write_chunk(const save_job& job, buffers& memory) {
  if (job.units) return write_units(job, memory);
  const std::size_t bytes = job.chunk_bytes();
  const std::uint64_t offset = job.offset();
  const std::byte* now = job.snapshot != nullptr ? job.snapshot : job.source->in_place(offset);
  if (now == nullptr) {
    if (job.source->read_device == nullptr) memory.now.resize(bytes);
    std::byte* const room =
        job.source->read_device == nullptr ? memory.now.data() : memory.bounce.room(bytes);
    job.source->read(offset, bytes, room, memory.scratch);
    now = room;
  }
  manifest_chunk& chunk = job.target->chunks[job.place];
  if (job.before == nullptr || !write_changes(job, now, bytes, memory, chunk))
    chunk = {data_->append(now, bytes), {}};
}

bool checkpoint_save::write_changes(const save_job& job, const std::byte* now, std::size_t bytes,
                                    buffers& memory, manifest_chunk& chunk) {
  memory.old.resize(bytes);
  try {
    before_->read_chunk(*job.before, job.place, memory.old.data(), memory.scratch, "an array");
  } catch (const io_error&) {
    return false;
  }
  const std::size_t unit = job.target->unit_bytes;
  memory.changed.clear();
  for (std::size_t begin = 0; begin < bytes; begin += unit)
    if (std::memcmp(now + begin, memory.old.data() + begin, std::min(unit, bytes - begin)) != 0)
      memory.changed.push_back(static_cast<std::uint32_t>(begin / unit));
  chunk = job.before->chunks[job.place];
  if (!memory.changed.empty() && outgrows(*job.target, job.place, chunk, memory.changed.size())) return false;
  merged_->move(*job.before, job.place, chunk);
  if (memory.changed.empty()) return true;
  std::byte* units = begin_patch(job, memory.changed, memory);
  for (const std::uint32_t position : memory.changed) {
    const std::size_t begin = position * unit;
    std::memcpy(units, now + begin, std::min(unit, bytes - begin));
    units += unit;
  }
  append_patch(memory, memory.changed.size(), chunk);
  return true;
}

void checkpoint_save::write_units(const save_job& job, buffers& memory) {
  manifest_chunk& chunk = job.target->chunks[job.place];
  chunk = job.before->chunks[job.place];
  merged_->move(*job.before, job.place, chunk);
  if (job.units->empty()) return;
  std::byte* const units = begin_patch(job, *job.units, memory);
  if (job.snapshot != nullptr)
    std::memcpy(units, job.snapshot, job.bytes());
  else
    job.read_units(units, memory.bounce, memory.scratch);
  append_patch(memory, job.units->size(), chunk);
}

std::byte* checkpoint_save::begin_patch(const save_job& job, const std::vector<std::uint32_t>& units,
                                        buffers& memory) {
  memory.patch.assign(patch_bytes(*job.target, units.size()), std::byte{});
  const std::size_t positions = units.size() * sizeof(std::uint32_t);
  std::memcpy(memory.patch.data(), units.data(), positions);
  return memory.patch.data() + positions;
}

void checkpoint_save::append_patch(const buffers& memory, std::size_t units, manifest_chunk& chunk) {
  chunk.patches.push_back(
      {data_->append(memory.patch.data(), memory.patch.size()), static_cast<std::uint32_t>(units)});
}

void checkpoint_save::drop_unused_files() {
  std::vector<bool> in_use(manifest_.files.size(), false);
  in_use.back() = true;
  for_each_piece_made([&](manifest_piece& piece) { in_use[piece.file] = true; });
  std::vector<std::uint32_t> place(in_use.size());
  std::vector<manifest_file> left;
  for (std::size_t i = 0; i < in_use.size(); ++i) {
    place[i] = static_cast<std::uint32_t>(left.size());
    if (in_use[i]) left.push_back(manifest_.files[i]);
  }
  for_each_piece_made([&](manifest_piece& piece) { piece.file = place[piece.file]; });
  manifest_.files = std::move(left);
}

void checkpoint_save::remove_unless_current() {
  if (!may_be_current(folder_, manifest_.number, place_))
    ::unlink(data_path(folder_, manifest_.number).c_str());
}

}  // namespace ferry::detail
