// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/crc32c.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/late.hpp>

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ferry::detail {

/// The open data files of a manifest. Reads check checksums. Thread-safe: several threads may read.
template <class Dependent>
class basic_checkpoint_files {
  using manifest = late<detail::manifest, Dependent>;
  using manifest_array = late<detail::manifest_array, Dependent>;
  using manifest_chunk = late<detail::manifest_chunk, Dependent>;
  using manifest_piece = late<detail::manifest_piece, Dependent>;
  using file = basic_file<Dependent>;

 public:
  /// Opens the files and checks their sizes. Throws io_error; `gone`, where given, is set instead of an error
  /// if a file is missing.
  basic_checkpoint_files(const std::string& folder, const manifest& of, bool* gone = nullptr) {
    for (const auto& each : of.files) {
      const std::string path = data_path(folder, each.number);
      const int opened = file::open_again(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (opened < 0) {
        if (errno == ENOENT && gone != nullptr) {
          *gone = true;
          return;
        }
        if (errno == ELOOP) throw_io_error("checkpoint", path, "it is a symbolic link");
        throw_errno("checkpoint", path, "open");
      }
      file& made = files_.emplace_back(opened, "checkpoint", path);
      if (!S_ISREG(made.status().st_mode)) made.fail("it is no regular file");
      if (const std::uint64_t size = made.size(); size != each.bytes)
        made.fail("it has " + std::to_string(size) + " bytes, and the manifest says " +
                  std::to_string(each.bytes));
      std::vector<std::byte> header(data_header_bytes);
      made.read_at(header.data(), header.size(), 0);
      if (header != data_header(each.number))
        made.fail("its header is not that of data file " + std::to_string(each.number));
    }
  }

  /// Reads the bytes of a chunk and applies its patches. `to` takes array.bytes_of_chunk(place) bytes;
  /// `scratch` is memory to reuse. `what` names the array in messages.
  void read_chunk(const manifest_array& array, std::size_t place, std::byte* to,
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
          files_[patch.piece.file].fail("a patch of " + what + " names unit " + std::to_string(position) +
                                        ", which lies beyond its chunk");
        std::memcpy(to + begin, scratch.data() + positions + i * unit, std::min(unit, bytes - begin));
      }
    }
  }

 private:
  void read_piece(const manifest_piece& piece, std::size_t bytes, std::byte* to,
                  const std::string& what) const {
    const file& from = files_[piece.file];
    from.read_at(to, bytes, piece.offset);
    if (const auto found = crc32c(to, bytes); found != piece.checksum)
      from.fail(what + " is damaged: the checksum of " + std::to_string(bytes) + " bytes at byte " +
                std::to_string(piece.offset) + " is " + std::to_string(found) + ", and the manifest says " +
                std::to_string(piece.checksum));
  }

  std::vector<file> files_;
};
using checkpoint_files = basic_checkpoint_files<void>;

}  // namespace ferry::detail
