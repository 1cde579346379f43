// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_save.hpp>

#include "../../backends/enabled.hpp"
#include "unit_digests.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ferry::detail {

std::byte* bounce_buffer::room(std::size_t bytes) {
  if (memory.size() < bytes) memory = tensor<std::byte, pinned_space>("checkpoint::bounce", bytes);
  return memory.data();
}

std::size_t patch_bytes(const manifest_array& array, std::size_t units) {
  return units * (sizeof(std::uint32_t) + array.unit_bytes);
}

/// True if the patches of a chunk would outgrow half of it, so that the whole chunk had better be written.
static bool outgrows(const manifest_array& array, std::size_t chunk_index, const manifest_chunk& chunk,
                     std::size_t units) {
  std::size_t bytes = patch_bytes(array, units);
  for (const auto& patch : chunk.patches) bytes += patch_bytes(array, patch.units);
  return 2 * bytes > array.bytes_of_chunk(chunk_index);
}

/// A chunk of a save.
struct save_job {
  manifest_array* target;
  const manifest_array* before;  ///< the same array in the current checkpoint, if its digests are known
  const checkpoint_array* source;
  std::size_t chunk_index;
  unit_digest* digests;                ///< of the chunk's units
  bool has_digests;                    ///< a device has made them
  const unit_digest* known = nullptr;  ///< those in the current checkpoint, with `before`
  const std::byte* snapshot = nullptr;
  /// The units that have changed; none: the chunk stays as it is. Without a value the whole chunk is written.
  std::optional<std::vector<std::uint32_t>> units{};

  [[nodiscard]] std::size_t chunk_bytes() const {
    return static_cast<std::size_t>(target->bytes_of_chunk(chunk_index));
  }
  /// Bytes that the save needs of the array.
  [[nodiscard]] std::size_t bytes() const {
    return units ? units->size() * target->unit_bytes : chunk_bytes();
  }
  /// Bytes of a unit: the end of the array may cut it.
  [[nodiscard]] std::size_t bytes_of_unit(std::size_t unit) const {
    return std::min<std::size_t>(target->unit_bytes, chunk_bytes() - unit * target->unit_bytes);
  }
  /// Makes the digests of the units of the chunk, whose bytes are given.
  void digest(const std::byte* bytes) {
    for (std::size_t begin = 0, i = 0; begin < chunk_bytes(); begin += target->unit_bytes, ++i)
      digests[i] = digest_of(bytes + begin, bytes_of_unit(i));
  }
  /// Lists the units whose digests are not those of the current checkpoint, unless the whole chunk had better
  /// be written.
  void find_changes() {
    std::vector<std::uint32_t> changed;
    for (std::uint32_t i = 0; std::size_t{i} * target->unit_bytes < chunk_bytes(); ++i)
      if (digests[i] != known[i]) changed.push_back(i);
    if (!changed.empty() && outgrows(*target, chunk_index, before->chunks[chunk_index], changed.size()))
      before = nullptr;
    else
      units = std::move(changed);
  }

  /// Bytes of the chunk: in the array's own memory if the host may use it there, else read into `memory`.
  const std::byte* read(std::size_t first, std::size_t count, chunk_memory& memory) const {
    const std::uint64_t offset = chunk_index * target->chunk_bytes + first;
    if (const std::byte* const present = source->in_place(offset); present != nullptr) return present;
    const bool from_device = source->read_device != nullptr;
    if (!from_device) memory.bytes.resize(count);
    std::byte* const room = from_device ? memory.bounce.room(count) : memory.bytes.data();
    source->read(offset, count, room, memory.scratch);
    return room;
  }
  /// Copies the units into memory, one after the other; a unit that the end of the array cuts is filled up.
  void read_units(std::byte* output, chunk_memory& memory) const {
    if (units->empty()) return;
    const std::size_t unit = target->unit_bytes, first = units->front() * unit;
    const std::size_t end = units->back() * unit + bytes_of_unit(units->back());
    const std::byte* const present = read(first, end - first, memory);
    for (const std::uint32_t index : *units) {
      const std::size_t count = bytes_of_unit(index);
      std::memcpy(output, present + (index * unit - first), count);
      std::memset(output + count, 0, unit - count);
      output += unit;
    }
  }
};

/// Moves what a chunk has in files that a save empties into the save's own file. Thread-safe.
class merged_pieces {
 public:
  /// `empties`: see files_to_empty.
  merged_pieces(std::vector<bool>&& empties, const checkpoint_files& source, piece_file& target)
      : empties_(std::move(empties)), source_(source), target_(target) {}

  /// Moves the pieces of `chunk`, which is that of the current checkpoint; patches that follow each other
  /// become one. Damaged pieces stay in their file, because load() names it. Throws if the new file can't be
  /// written.
  void move(const manifest_array& array, std::size_t chunk_index, manifest_chunk& chunk) const {
    if (leaves(chunk.piece) && rewrite(array, chunk_index, chunk)) return;
    auto& patches = chunk.patches;
    for (std::size_t first = 0; first < patches.size(); ++first) {
      std::size_t end = first;
      while (end < patches.size() && leaves(patches[end].piece)) ++end;
      if (end == first || !join(array, chunk_index, patches, first, end)) continue;
      patches.erase(patches.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                    patches.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }

 private:
  /// True if the file of the piece is emptied.
  [[nodiscard]] bool leaves(const manifest_piece& piece) const { return empties_[piece.file]; }

  /// Writes a chunk with its patches as one piece.
  bool rewrite(const manifest_array& array, std::size_t chunk_index, manifest_chunk& chunk) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(array.bytes_of_chunk(chunk_index))), scratch;
    try {
      source_.read_chunk(array, chunk_index, bytes.data(), scratch, "an array");
    } catch (const io_error&) {
      return false;
    }
    chunk = {target_.append(bytes.data(), bytes.size()), {}};
    return true;
  }

  /// Writes patches [first, end) as one, instead of the first: of each unit the last.
  bool join(const manifest_array& array, std::size_t chunk_index, std::vector<manifest_patch>& patches,
            std::size_t first, std::size_t end) const {
    const std::size_t unit = array.unit_bytes;
    const std::uint64_t most = (array.bytes_of_chunk(chunk_index) + unit - 1) / unit;
    struct moved {
      std::uint32_t position;
      std::size_t begin_byte;  ///< its first byte: the newest unit of a position is the last one
    };
    std::vector<moved> units;
    std::vector<std::byte> bytes;
    try {
      for (std::size_t i = first; i < end; ++i) {
        const std::size_t begin = bytes.size(), count = patches[i].units;
        bytes.resize(begin + patch_bytes(array, count));
        source_.read_piece(patches[i].piece, bytes.size() - begin, bytes.data() + begin, "an array");
        for (std::size_t k = 0; k < count; ++k) {
          std::uint32_t position = 0;
          std::memcpy(&position, bytes.data() + begin + k * sizeof position, sizeof position);
          if (position >= most) return false;
          units.push_back({position, begin + count * sizeof position + k * unit});
        }
      }
    } catch (const io_error&) {
      return false;
    }
    std::sort(units.begin(), units.end(), [](const moved& a, const moved& b) {
      return std::tie(a.position, b.begin_byte) < std::tie(b.position, a.begin_byte);
    });
    const auto last = std::unique(units.begin(), units.end(),
                                  [](const moved& a, const moved& b) { return a.position == b.position; });
    units.erase(last, units.end());
    std::vector<std::byte> patch(patch_bytes(array, units.size()));
    std::byte* target = patch.data() + units.size() * sizeof(std::uint32_t);
    for (std::size_t i = 0; i < units.size(); ++i, target += unit) {
      std::memcpy(patch.data() + i * sizeof(std::uint32_t), &units[i].position, sizeof(std::uint32_t));
      std::memcpy(target, bytes.data() + units[i].begin_byte, unit);
    }
    patches[first] = {target_.append(patch.data(), patch.size()), static_cast<std::uint32_t>(units.size())};
    return true;
  }

  std::vector<bool> empties_;
  const checkpoint_files& source_;
  piece_file& target_;
};

namespace {

/// The data files that a save of changes empties, by number. None while there is room for one file more, else
/// those of which the checkpoint needs the least bytes, until half of most_data_files are left. So files of
/// one size are merged when many of them have gathered, and a byte is not moved with each save.
std::vector<bool> files_to_empty(const manifest& content) {
  std::vector<bool> chosen(content.files.size(), false);
  if (content.files.size() < most_data_files) return chosen;
  std::vector<std::uint64_t> needed(content.files.size(), 0);
  for (const auto& entry : content.entries)
    for (const auto& array : entry.arrays)
      for (std::size_t chunk_index = 0; chunk_index < array.chunks.size(); ++chunk_index) {
        const auto& chunk = array.chunks[chunk_index];
        needed[chunk.piece.file] += array.bytes_of_chunk(chunk_index);
        for (const auto& patch : chunk.patches) needed[patch.piece.file] += patch_bytes(array, patch.units);
      }
  std::vector<std::size_t> order(needed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return needed[a] < needed[b]; });
  order.resize(order.size() - most_data_files / 2);
  for (const std::size_t file : order) chosen[file] = true;
  return chosen;
}

bool is_like(const manifest_array& a, const manifest_array& b) {
  return a.dtype == b.dtype && a.element_bytes == b.element_bytes && a.extents == b.extents &&
         a.chunk_bytes == b.chunk_bytes && a.unit_bytes == b.unit_bytes;
}

/// The current manifest. One that can't be read is refused: it may be a newer ferry's.
manifest read_old(const std::string& folder, bool changes) {
  bool missing = false;
  manifest latest = read_manifest(folder, &missing);
  if (missing && changes)
    throw_io_error("checkpoint", folder,
                   "it holds no checkpoint yet, so changes can't be saved; save everything first");
  return latest;
}

/// True if a manifest stays short enough with one patch more for each chunk.
bool has_room_for_patches(const manifest& content) {
  // Bytes of a piece with the number of one of 999 files, an offset within petabytes, and units of one byte.
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

checkpoint_save::checkpoint_save(const std::string& folder, const checkpoint_target& target,
                                 checkpoint_content&& content, bool changes)
    : folder_(folder), target_(target), content_(std::move(content)), digests_(content_.arrays.size()) {
  make_folder(folder);
  lock_.emplace(folder);
  old_ = read_old(folder, changes);
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
      for (std::size_t chunk_index = 0; chunk_index < array.chunks.size(); ++chunk_index) {
        const std::size_t first = chunk_index * (array.chunk_bytes / array.unit_bytes);
        jobs_.push_back({&array, nullptr, &content_.arrays[index], chunk_index, &digests.units[first],
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

std::size_t checkpoint_save::chunks() const { return jobs_.size(); }
std::size_t checkpoint_save::bytes_of(std::size_t chunk) const { return jobs_[chunk].bytes(); }

void checkpoint_save::snapshot(std::size_t begin, std::size_t end, std::byte* target, int threads) {
  std::vector<std::size_t> offsets;
  std::size_t offset = 0;
  for (std::size_t i = begin; i < end; offset += bytes_of(i++)) offsets.push_back(offset);
  for_each_job(begin, end, threads, [&](save_job& job, chunk_memory& memory) {
    std::byte* const copy = target + offsets[static_cast<std::size_t>(&job - &jobs_[begin])];
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
    manifest_chunk& chunk = job.target->chunks[job.chunk_index];
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
    if (target_.name.empty()) write_digests(folder_, manifest_, digests_);
    write_manifest(folder_, manifest_, target_);
  } catch (...) {
    remove_unless_current();
    throw;
  }
  merged_.reset();
  before_ = nullptr;
  remove_generations(folder_, manifest_, target_);
  remove_leftovers(folder_, manifest_);
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
  job.target->chunks[job.chunk_index] = {data_->append(now, bytes), {}};
}

void checkpoint_save::write_units(save_job& job, chunk_memory& memory) {
  manifest_chunk& chunk = job.target->chunks[job.chunk_index];
  chunk = job.before->chunks[job.chunk_index];
  merged_->move(*job.before, job.chunk_index, chunk);
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
  const auto for_each_piece = [this](const auto& visit) {
    for (auto& entry : manifest_.entries)
      for (auto& array : entry.arrays)
        for (auto& chunk : array.chunks) {
          visit(chunk.piece);
          for (auto& patch : chunk.patches) visit(patch.piece);
        }
  };
  for_each_piece([&](manifest_piece& piece) { in_use[piece.file] = true; });
  std::vector<std::uint32_t> new_number(in_use.size());
  std::vector<manifest_file> left;
  for (std::size_t i = 0; i < in_use.size(); ++i) {
    new_number[i] = static_cast<std::uint32_t>(left.size());
    if (in_use[i]) left.push_back(manifest_.files[i]);
  }
  for_each_piece([&](manifest_piece& piece) { piece.file = new_number[piece.file]; });
  manifest_.files = std::move(left);
}

void checkpoint_save::remove_unless_current() {
  if (may_be_current(folder_, manifest_.number, target_)) return;
  ::unlink(data_path(folder_, manifest_.number).c_str());
  ::unlink(digests_path(folder_, manifest_.number).c_str());
}

}  // namespace ferry::detail
