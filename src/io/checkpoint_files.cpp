// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_files.hpp>

#include "crc32c.hpp"

#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/manifest_writer.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace ferry::detail {

checkpoint_files::checkpoint_files(const std::string& folder, const manifest& of, bool* gone) {
  // Files that are open can be read whoever removes them; the others must stay.
  if (of.files.size() > most_data_files) keeps_all_.emplace(folder, folder_use::reads);
  files_.reserve(of.files.size());
  std::vector<std::byte> header(data_header_bytes);
  for (const auto& each : of.files) {
    files_.emplace_back(data_path(folder, each.number));
    const file& found = files_.back().content;
    if (!open(files_.back())) {
      if (errno == ENOENT && gone != nullptr) {
        *gone = true;
        return;
      }
      fail_to_open(found);
    }
    if (!S_ISREG(found.status().st_mode)) found.fail("it is no regular file");
    if (const std::uint64_t size = found.size(); size != each.bytes)
      found.fail("it has " + std::to_string(size) + " bytes, and the manifest says " +
                 std::to_string(each.bytes));
    found.read_at(header.data(), header.size(), 0);
    if (header != data_header(each.number))
      found.fail("its header is not that of data file " + std::to_string(each.number));
  }
}

void checkpoint_files::read_chunk(const manifest_array& array, std::size_t place, std::byte* to,
                                  std::vector<std::byte>& scratch, const std::string& what) const {
  const manifest_chunk& chunk = array.chunks[place];
  const auto bytes = static_cast<std::size_t>(array.bytes_of_chunk(place));
  read_piece(chunk.piece, bytes, to, what);
  for (const auto& patch : chunk.patches) {
    const std::size_t unit = array.unit_bytes;
    const std::size_t positions = patch.units * sizeof(std::uint32_t);
    scratch.resize(positions + patch.units * unit);
    read_piece(patch.piece, scratch.size(), scratch.data(), what);
    for (std::size_t i = 0; i < patch.units; ++i) {
      std::uint32_t position = 0;
      std::memcpy(&position, scratch.data() + i * sizeof position, sizeof position);
      const std::size_t begin = position * unit;
      if (begin >= bytes)
        files_[patch.piece.file].content.fail("a patch of " + what + " names unit " +
                                              std::to_string(position) + ", which lies beyond its chunk");
      std::memcpy(to + begin, scratch.data() + positions + i * unit, std::min(unit, bytes - begin));
    }
  }
}

void checkpoint_files::read_piece(const manifest_piece& piece, std::size_t bytes, std::byte* to,
                                  const std::string& what) const {
  const user held(*this, piece.file);
  const file& from = files_[piece.file].content;
  from.read_at(to, bytes, piece.offset);
  if (const auto found = crc32c(to, bytes); found != piece.checksum)
    from.fail(what + " is damaged: the checksum of " + std::to_string(bytes) + " bytes at byte " +
              std::to_string(piece.offset) + " is " + std::to_string(found) + ", and the manifest says " +
              std::to_string(piece.checksum));
}

checkpoint_files::user::user(const checkpoint_files& home, std::size_t place)
    : home_(home), of_(home.files_[place]) {
  const std::lock_guard lock(home_.guard_);
  if (!home_.open(of_)) fail_to_open(of_.content);
  ++of_.users;
}

checkpoint_files::user::~user() {
  const std::lock_guard lock(home_.guard_);
  --of_.users;
}

bool checkpoint_files::open(data_file& wanted) const noexcept {
  wanted.last_use = ++uses_;
  if (wanted.content.is_open()) return true;
  if (open_ >= most_data_files) close_oldest();
  while (!wanted.content.open(wanted.content.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)) {
    const int reason = errno;
    // The process has no descriptor left, or another thread has taken the one that became free.
    if ((reason == EMFILE || reason == ENFILE) && close_oldest()) continue;
    errno = reason;
    return false;
  }
  ++open_;
  return true;
}

void checkpoint_files::fail_to_open(const file& of) {
  if (errno == ELOOP) of.fail("it is a symbolic link");
  of.fail_by_errno("open");
}

bool checkpoint_files::close_oldest() const noexcept {
  data_file* oldest = nullptr;
  for (auto& each : files_)
    if (each.content.is_open() && each.users == 0 && (oldest == nullptr || each.last_use < oldest->last_use))
      oldest = &each;
  if (oldest == nullptr) return false;
  oldest->content.drop();
  --open_;
  return true;
}

}  // namespace ferry::detail
