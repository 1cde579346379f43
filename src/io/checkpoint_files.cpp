// SPDX-License-Identifier: Apache-2.0

#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ferry::detail {

checkpoint_files::checkpoint_files(const std::string& folder, const manifest& content, bool* gone) {
  // Files that are open can be read whoever removes them; the others must stay.
  if (content.files.size() > most_data_files) keeps_all_.emplace(folder, folder_use::reads);
  files_.reserve(content.files.size());
  std::vector<std::byte> header(data_header_bytes);
  for (const auto& entry : content.files) {
    files_.emplace_back(data_path(folder, entry.number));
    const file& data = files_.back().content;
    if (!open(files_.back())) {
      if (errno == ENOENT && gone != nullptr) {
        *gone = true;
        return;
      }
      fail_to_open(data);
    }
    if (!S_ISREG(data.status().st_mode)) data.fail("it is no regular file");
    if (const std::uint64_t size = data.size(); size != entry.bytes)
      data.fail(joined("it has ", size, " bytes, and the manifest says ", entry.bytes));
    data.read_at(header.data(), header.size(), 0);
    if (header != data_header(entry.number))
      data.fail(joined("its header is not that of data file ", entry.number));
  }
}

void checkpoint_files::read_chunk(const manifest_array& array, std::size_t index, std::byte* target,
                                  std::vector<std::byte>& scratch, const std::string& subject) const {
  const manifest_chunk& chunk = array.chunks[index];
  const auto bytes = static_cast<std::size_t>(array.bytes_of_chunk(index));
  read_piece(chunk.piece, bytes, target, subject);
  for (const auto& patch : chunk.patches) {
    const std::size_t unit = array.unit_bytes;
    const std::size_t positions = patch.units * sizeof(std::uint32_t);
    scratch.resize(positions + patch.units * unit);
    read_piece(patch.piece, scratch.size(), scratch.data(), subject);
    for (std::size_t i = 0; i < patch.units; ++i) {
      std::uint32_t position = 0;
      std::memcpy(&position, scratch.data() + i * sizeof position, sizeof position);
      const std::size_t begin = position * unit;
      if (begin >= bytes)
        files_[patch.piece.file].content.fail(
            joined("a patch of ", subject, " names unit ", position, ", which lies beyond its chunk"));
      std::memcpy(target + begin, scratch.data() + positions + i * unit, std::min(unit, bytes - begin));
    }
  }
}

void checkpoint_files::read_array(const manifest_array& array, void* target,
                                  const std::string& subject) const {
  std::vector<std::byte> scratch;
  for (std::size_t index = 0; index < array.chunks.size(); ++index)
    read_chunk(array, index, static_cast<std::byte*>(target) + index * array.chunk_bytes, scratch, subject);
}

void checkpoint_files::read_piece(const manifest_piece& piece, std::size_t bytes, std::byte* target,
                                  const std::string& subject) const {
  data_file& entry = files_[piece.file];
  const file& data = entry.content;
  {
    const std::lock_guard lock(guard_);
    if (!open(entry)) fail_to_open(data);
    ++entry.users;
  }
  const auto leave = [this](data_file* file_in_use) {
    const std::lock_guard lock(guard_);
    --file_in_use->users;
  };
  const std::unique_ptr<data_file, decltype(leave)> use(&entry, leave);  // keeps the file open
  data.read_at(target, bytes, piece.offset);
  if (const auto checksum = crc32c(target, bytes); checksum != piece.checksum)
    data.fail(joined(subject, " is damaged: the checksum of ", bytes, " bytes at byte ", piece.offset, " is ",
                     checksum, ", and the manifest says ", piece.checksum));
}

bool checkpoint_files::open(data_file& data) const noexcept {
  data.last_use = ++uses_;
  if (data.content.is_open()) return true;
  if (open_ >= most_data_files) close_oldest();
  while (!data.content.open(data.content.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)) {
    const int reason = errno;
    // The process has no descriptor left, or another thread has taken the one that became free.
    if ((reason == EMFILE || reason == ENFILE) && close_oldest()) continue;
    errno = reason;
    return false;
  }
  ++open_;
  return true;
}

void checkpoint_files::fail_to_open(const file& data) {
  if (errno == ELOOP) data.fail("it is a symbolic link");
  data.fail_by_errno("open");
}

bool checkpoint_files::close_oldest() const noexcept {
  data_file* oldest = nullptr;
  for (auto& data : files_)
    if (data.content.is_open() && data.users == 0 && (oldest == nullptr || data.last_use < oldest->last_use))
      oldest = &data;
  if (oldest == nullptr) return false;
  oldest->content.drop();
  --open_;
  return true;
}

piece_file::piece_file(const std::string& folder, std::uint64_t number)
    : path_(data_path(folder, number)), content_("checkpoint", path_) {
  struct stat old {};
  const bool exists = ::stat(manifest_path(folder).c_str(), &old) == 0 && S_ISREG(old.st_mode);
  const auto header = data_header(number);
  if (!content_.open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, exists ? 0600 : 0666))
    throw_errno("checkpoint", path_, "create the file");
  created_ = true;
  try {
    if (exists) take_rights(content_.descriptor(), old);  // who may read the manifest may read the data
    content_.write_at(header.data(), header.size(), 0);
  } catch (...) {
    drop();
    throw;
  }
}

void piece_file::drop() {
  if (created_ && process_.is_here()) ::unlink(path_.c_str());
  created_ = false;
}

manifest_piece piece_file::append(const std::byte* source, std::size_t bytes) {
  constexpr std::uint64_t alignment = 64;
  constexpr std::size_t part_bytes = std::size_t{1} << 18;
  manifest_piece piece;
  piece.file = fresh;
  piece.offset = end_.fetch_add((bytes + alignment - 1) / alignment * alignment);
  // Small parts are still in the cache when they are written.
  for (std::size_t position = 0; position < bytes;) {
    const std::size_t count = std::min(part_bytes, bytes - position);
    piece.checksum = crc32c(source + position, count, piece.checksum);
    content_.write_at(source + position, count, piece.offset + position);
    position += count;
  }
  content_.start_write_back(piece.offset, bytes);
  return piece;
}

void piece_file::abandon() noexcept {
  if (!content_.is_open()) return;
  [[maybe_unused]] const int result = ::ftruncate(content_.descriptor(), 0);
}

bool may_be_current(const std::string& folder, std::uint64_t number,
                    const checkpoint_target& target) noexcept {
  try {
    bool missing = false;
    return read_manifest(folder, &missing, {0, target.name}).number == number && !missing;
  } catch (...) {
    return true;
  }
}

}  // namespace ferry::detail
