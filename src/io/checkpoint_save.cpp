// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_save.hpp>

#include "merged_pieces.hpp"

#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/detail/manifest.hpp>
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

struct checkpoint_save::buffers {
  std::vector<std::byte> now, old, patch, scratch;
  std::vector<std::uint32_t> changed;
  bounce_buffer bounce;
};

checkpoint_save::checkpoint_save(const std::string& folder, checkpoint_content&& content, bool changes,
                                 const manifest* base)
    : folder_(folder), content_(std::move(content)) {
  make_folder(folder);
  lock_.emplace(folder);
  old_ = read_old(changes);
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
  std::size_t array = 0;
  for (auto& entry : content_.entries) {
    const manifest_entry* const was = changes ? old_.entry(entry.name) : nullptr;
    for (auto& each : entry.arrays) {
      const manifest_array* like = was == nullptr ? nullptr : was->array(each.name);
      if (like != nullptr && !is_like(*like, each)) like = nullptr;
      each.chunks.resize(static_cast<std::size_t>(each.chunk_count()));
      for (std::size_t place = 0; place < each.chunks.size(); ++place) {
        jobs_.push_back({&each, like, &content_.arrays[array], place});
        if (by_rows && like != nullptr && content_.arrays[array].changed != nullptr)
          jobs_.back().use(*content_.arrays[array].changed);
      }
      ++array;
    }
  }
}

checkpoint_save::~checkpoint_save() = default;

std::size_t checkpoint_save::bytes_of(std::size_t chunk) const { return jobs_[chunk].bytes(); }

void checkpoint_save::snapshot(std::size_t begin, std::size_t end, std::byte* to, int threads) {
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
                 job.read_units(to + places[i], bounce, scratch);
               } else if (job.source->read_device != nullptr) {
                 std::byte* const between = bounce.room(bytes);
                 job.source->read(job.offset(), bytes, between, scratch);
                 std::memcpy(to + places[i], between, bytes);
               } else {
                 job.source->read(job.offset(), bytes, to + places[i], scratch);
               }
               job.snapshot = to + places[i];
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
  const auto own = static_cast<std::uint32_t>(manifest_.files.size());
  // An empty file says nothing; it keeps a save of no bytes like any other.
  manifest_.files.push_back({manifest_.number, data_->size()});
  for (auto& each : jobs_) {
    manifest_chunk& chunk = each.target->chunks[each.place];
    if (chunk.piece.file == fresh) chunk.piece.file = own;
    for (auto& patch : chunk.patches)
      if (patch.piece.file == fresh) patch.piece.file = own;
  }
  manifest_.entries = content_.entries;
  drop_unused_files();
  data_->finish();
  data_->keep();
  try {
    write_manifest(folder_, manifest_);
  } catch (...) {
    remove_unless_current();
    throw;
  }
  merged_.reset();
  before_ = nullptr;
  remove_leftovers(folder_, manifest_);
}

bool checkpoint_save::is_like(const manifest_array& a, const manifest_array& b) {
  return a.dtype == b.dtype && a.element_bytes == b.element_bytes && a.extents == b.extents &&
         a.chunk_bytes == b.chunk_bytes && a.unit_bytes == b.unit_bytes;
}

manifest checkpoint_save::read_old(bool changes) const {
  bool missing = false;
  manifest found = read_manifest(folder_, &missing);
  if (missing && changes)
    throw_io_error("checkpoint", folder_,
                   "it holds no checkpoint yet, so changes can't be saved; save everything first");
  return found;
}

void checkpoint_save::write_chunk(const save_job& of, buffers& own) {
  if (of.units) return write_units(of, own);
  const std::size_t bytes = of.chunk_bytes();
  const std::uint64_t offset = of.offset();
  const std::byte* now = of.snapshot != nullptr ? of.snapshot : of.source->in_place(offset);
  if (now == nullptr) {
    if (of.source->read_device == nullptr) own.now.resize(bytes);
    std::byte* const room = of.source->read_device == nullptr ? own.now.data() : own.bounce.room(bytes);
    of.source->read(offset, bytes, room, own.scratch);
    now = room;
  }
  manifest_chunk& to = of.target->chunks[of.place];
  if (of.before == nullptr || !write_changes(of, now, bytes, own, to)) to = {data_->append(now, bytes), {}};
}

bool checkpoint_save::write_changes(const save_job& of, const std::byte* now, std::size_t bytes, buffers& own,
                                    manifest_chunk& to) {
  own.old.resize(bytes);
  try {
    before_->read_chunk(*of.before, of.place, own.old.data(), own.scratch, "an array");
  } catch (const io_error&) {
    return false;
  }
  const std::size_t unit = of.target->unit_bytes;
  own.changed.clear();
  for (std::size_t begin = 0; begin < bytes; begin += unit)
    if (std::memcmp(now + begin, own.old.data() + begin, std::min(unit, bytes - begin)) != 0)
      own.changed.push_back(static_cast<std::uint32_t>(begin / unit));
  to = of.before->chunks[of.place];
  if (!own.changed.empty() && outgrows(*of.target, of.place, to, own.changed.size())) return false;
  merged_->move(*of.before, of.place, to);
  if (own.changed.empty()) return true;
  std::byte* units = begin_patch(of, own.changed, own);
  for (const std::uint32_t each : own.changed) {
    const std::size_t begin = each * unit;
    std::memcpy(units, now + begin, std::min(unit, bytes - begin));
    units += unit;
  }
  append_patch(own, own.changed.size(), to);
  return true;
}

void checkpoint_save::write_units(const save_job& of, buffers& own) {
  manifest_chunk& to = of.target->chunks[of.place];
  to = of.before->chunks[of.place];
  merged_->move(*of.before, of.place, to);
  if (of.units->empty()) return;
  std::byte* const units = begin_patch(of, *of.units, own);
  if (of.snapshot != nullptr)
    std::memcpy(units, of.snapshot, of.bytes());
  else
    of.read_units(units, own.bounce, own.scratch);
  append_patch(own, of.units->size(), to);
}

std::byte* checkpoint_save::begin_patch(const save_job& of, const std::vector<std::uint32_t>& units,
                                        buffers& own) {
  own.patch.assign(patch_bytes(*of.target, units.size()), std::byte{});
  const std::size_t positions = units.size() * sizeof(std::uint32_t);
  std::memcpy(own.patch.data(), units.data(), positions);
  return own.patch.data() + positions;
}

void checkpoint_save::append_patch(const buffers& own, std::size_t units, manifest_chunk& to) {
  to.patches.push_back(
      {data_->append(own.patch.data(), own.patch.size()), static_cast<std::uint32_t>(units)});
}

void checkpoint_save::drop_unused_files() {
  std::vector<bool> used(manifest_.files.size(), false);
  used.back() = true;
  for_each_piece_made([&](manifest_piece& each) { used[each.file] = true; });
  std::vector<std::uint32_t> place(used.size());
  std::vector<manifest_file> left;
  for (std::size_t i = 0; i < used.size(); ++i) {
    place[i] = static_cast<std::uint32_t>(left.size());
    if (used[i]) left.push_back(manifest_.files[i]);
  }
  for_each_piece_made([&](manifest_piece& each) { each.file = place[each.file]; });
  manifest_.files = std::move(left);
}

void checkpoint_save::remove_unless_current() {
  if (!may_be_current(folder_, manifest_.number)) ::unlink(data_path(folder_, manifest_.number).c_str());
}

}  // namespace ferry::detail
