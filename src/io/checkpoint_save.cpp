// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_save.hpp>

#include "device_digests.hpp"
#include "merged_pieces.hpp"
#include "unit_digests.hpp"

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

/// Digests of an array in a device's memory as it is now; room for those of other arrays, which are made of the
/// bytes that are written.
array_digests make_digests([[maybe_unused]] const checkpoint_array& array, std::size_t units) {
  array_digests digests{digest_kind::xxh3, std::vector<unit_digest>(units)};
  if constexpr (!is_host_exec<Kokkos::DefaultExecutionSpace>)
    if (digest_on_device<Kokkos::DefaultExecutionSpace>(array, digests.units))
      digests.kind = digest_kind::by_device;
  return digests;
}

}  // namespace

checkpoint_save::checkpoint_save(const std::string& folder, const checkpoint_place& home,
                                 checkpoint_content&& content, bool changes)
    : folder_(folder), place_(home), content_(std::move(content)), digests_(content_.arrays.size()) {
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
  const auto known = changes ? read_digests(folder, old_) : std::vector<array_digests>{};
  std::vector<const manifest_array*> stored;
  for (const auto& entry : old_.entries)
    for (const auto& array : entry.arrays) stored.push_back(&array);
  std::size_t index = 0;
  for (auto& entry : content_.entries) {
    const manifest_entry* const was = known.empty() ? nullptr : old_.entry(entry.name);
    for (auto& array : entry.arrays) {
      array_digests& digests = digests_[index];
      digests = make_digests(content_.arrays[index], static_cast<std::size_t>(array.unit_count()));
      const manifest_array* like = was == nullptr ? nullptr : was->array(array.name);
      if (like != nullptr && !is_like(*like, array)) like = nullptr;
      const array_digests* const before =
          like == nullptr ? nullptr : &known[std::find(stored.begin(), stored.end(), like) - stored.begin()];
      array.chunks.resize(static_cast<std::size_t>(array.chunk_count()));
      for (std::size_t place = 0; place < array.chunks.size(); ++place) {
        const std::size_t first = place * (array.chunk_bytes / array.unit_bytes);
        jobs_.push_back({&array, nullptr, &content_.arrays[index], place, &digests.units[first],
                         digests.kind == digest_kind::by_device});
        if (before != nullptr && before->kind == digests.kind) {
          jobs_.back().before = like;
          jobs_.back().known = &before->units[first];
        }
      }
      ++index;
    }
  }
  if (known.empty()) return;
  for_each_job(0, jobs_.size(), chunk_threads(), [](save_job& job, chunk_memory& memory) {
    if (job.before == nullptr) return;
    if (!job.has_digests) job.digest(job.read(0, job.chunk_bytes(), memory));
    job.find_changes();
  });
}

checkpoint_save::~checkpoint_save() = default;

std::size_t checkpoint_save::bytes_of(std::size_t chunk) const { return jobs_[chunk].bytes(); }

void checkpoint_save::snapshot(std::size_t begin, std::size_t end, std::byte* target, int threads) {
  std::vector<std::size_t> places;
  std::size_t place = 0;
  for (std::size_t i = begin; i < end; place += bytes_of(i++)) places.push_back(place);
  for_each_job(begin, end, threads, [&](save_job& job, chunk_memory& memory) {
    std::byte* const copy = target + places[static_cast<std::size_t>(&job - &jobs_[begin])];
    if (job.units)
      job.read_units(copy, memory);
    else
      std::memcpy(copy, job.read(0, job.bytes(), memory), job.bytes());
    job.snapshot = copy;
  });
}

void checkpoint_save::write(std::size_t begin, std::size_t end, int threads) {
  for_each_job(begin, end, threads, [&](save_job& job, chunk_memory& memory) { write_chunk(job, memory); });
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
    // The next save of changes compares with the newest generation, which a named checkpoint is not.
    if (place_.name.empty()) write_digests(folder_, manifest_, digests_);
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

void checkpoint_save::for_each_job(std::size_t begin, std::size_t end, int threads,
                                   function_ref<void(save_job&, chunk_memory&)> work) {
  parallel(static_cast<std::int64_t>(end - begin), 1, threads_for_chunks(threads),
           [&](front_queue& chunks, int) {
             chunk_memory memory;
             for (std::size_t i = 0; chunks.take(i);) work(jobs_[begin + i], memory);
           });
}

void checkpoint_save::write_chunk(save_job& job, chunk_memory& memory) {
  if (job.units) return write_units(job, memory);
  const std::size_t bytes = job.chunk_bytes();
  const std::byte* const now = job.snapshot != nullptr ? job.snapshot : job.read(0, bytes, memory);
  if (!job.has_digests)
    job.digest(now);  // first: a later change of the array is then not taken for what the file holds
  job.target->chunks[job.place] = {data_->append(now, bytes), {}};
}

void checkpoint_save::write_units(save_job& job, chunk_memory& memory) {
  manifest_chunk& chunk = job.target->chunks[job.place];
  chunk = job.before->chunks[job.place];
  merged_->move(*job.before, job.place, chunk);
  if (job.units->empty()) return;
  // The positions, then the units.
  const std::size_t positions = job.units->size() * sizeof(std::uint32_t);
  std::vector<std::byte> patch(patch_bytes(*job.target, job.units->size()));
  std::memcpy(patch.data(), job.units->data(), positions);
  std::byte* next = patch.data() + positions;
  if (job.snapshot != nullptr)
    std::memcpy(next, job.snapshot, job.bytes());
  else
    job.read_units(next, memory);
  for (const std::uint32_t unit : *job.units) {
    if (!job.has_digests) job.digests[unit] = digest_of(next, job.bytes_of_unit(unit));
    next += job.target->unit_bytes;
  }
  chunk.patches.push_back(
      {data_->append(patch.data(), patch.size()), static_cast<std::uint32_t>(job.units->size())});
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
  if (may_be_current(folder_, manifest_.number, place_)) return;
  ::unlink(data_path(folder_, manifest_.number).c_str());
  ::unlink(digests_path(folder_, manifest_.number).c_str());
}

}  // namespace ferry::detail
