// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/detail/manifest_reader.hpp>

#include "crc32c.hpp"
#include "manifest_body_v2.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/manifest_writer.hpp>
#include <ferry/tensor/extents.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {
namespace {

/// Checks that what a manifest says can be: names are unique, and all pieces lie within the data files.
class manifest_check {
 public:
  manifest_check(const manifest& whole, const std::string& path) : whole_(whole), path_(path) {}

  void run() {
    check_files();
    for (const auto& file : whole_.files)
      room_ = file.bytes > most_bytes - room_ ? most_bytes : room_ + file.bytes;
    for (const auto& entry : whole_.entries) {
      require_unique(entry.facts, "facts");
      for (const auto& array : entry.arrays) check_array(array);
      require_unique(entry.arrays, "arrays");
    }
    require_unique(whole_.entries, "entries");
  }

 private:
  static constexpr std::uint64_t most_bytes = std::numeric_limits<std::int64_t>::max();

  [[noreturn]] void fail(const std::string& problem) const {
    throw_io_error("checkpoint", path_, "not a manifest that can be read: " + problem);
  }
  template <class Named>
  void require_unique(const std::vector<Named>& list, const char* kind) const {
    std::vector<std::string_view> names;
    names.reserve(list.size());
    for (const auto& item : list) names.push_back(item.name);
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
      fail("two of its " + std::string(kind) + " are named '" + std::string(*twice) + "'");
  }

  void check_files() const {
    std::uint64_t before = 0;
    for (const auto& file : whole_.files) {
      if (file.number <= before || file.number > whole_.number)
        fail("data file " + std::to_string(file.number) + " is out of order");
      if (file.bytes < data_header_bytes || file.bytes > most_bytes)
        fail("data file " + std::to_string(file.number) + " can't have " + std::to_string(file.bytes) +
             " bytes");
      before = file.number;
    }
  }

  void check_array(const manifest_array& array) {
    const std::string name = "array '" + array.name + "'";
    if (array.element_bytes == 0 || array.element_bytes > largest_chunk || array.extents.size() > max_rank)
      fail(name + " has elements of " + std::to_string(array.element_bytes) + " bytes and rank " +
           std::to_string(array.extents.size()));
    std::uint64_t bytes = array.element_bytes;
    bool empty = false;
    for (const auto extent : array.extents) {
      empty = empty || extent == 0;
      if (extent != 0 && bytes > most_bytes / extent) fail(name + " has too many bytes");
      bytes *= extent == 0 ? 1 : extent;
    }
    if (empty) bytes = 0;
    // No two chunks share bytes, so an array that is longer than the files is a lie about its memory.
    if (bytes > room_) fail(name + " has " + std::to_string(bytes) + " bytes, more than all data files");
    room_ -= bytes;
    if (array.unit_bytes == 0 || array.unit_bytes % array.element_bytes != 0 || array.chunk_bytes == 0 ||
        array.chunk_bytes > largest_chunk || array.chunk_bytes % array.unit_bytes != 0)
      fail(name + " has chunks of " + std::to_string(array.chunk_bytes) + " bytes and units of " +
           std::to_string(array.unit_bytes));
    if (array.chunks.size() != array.chunk_count())
      fail(name + " has " + std::to_string(array.chunks.size()) + " chunks instead of " +
           std::to_string(array.chunk_count()));
    for (std::size_t place = 0; place < array.chunks.size(); ++place) {
      require_within(array.chunks[place].piece, array.bytes_of_chunk(place));
      for (const auto& patch : array.chunks[place].patches) {
        if (patch.units == 0 || patch.units > array.chunk_bytes / array.unit_bytes)
          fail("a patch of " + name + " has " + std::to_string(patch.units) + " units");
        require_within(patch.piece, patch.units * (sizeof(std::uint32_t) + std::uint64_t{array.unit_bytes}));
      }
    }
  }
  void require_within(const manifest_piece& piece, std::uint64_t bytes) const {
    if (piece.file >= whole_.files.size())
      fail("a piece lies in file " + std::to_string(piece.file) + " of its list");
    const manifest_file& file = whole_.files[piece.file];
    if (piece.offset < data_header_bytes || piece.offset > file.bytes || bytes > file.bytes - piece.offset)
      fail(std::to_string(bytes) + " bytes at byte " + std::to_string(piece.offset) +
           " do not lie in data file " + std::to_string(file.number) + ", which has " +
           std::to_string(file.bytes) + " bytes");
  }

  const manifest& whole_;
  const std::string& path_;
  std::uint64_t room_ = 0;  ///< bytes of the data files that no array has taken
};

template <class Number>
Number number_at(std::string_view bytes, std::size_t place) {
  Number value{};
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

constexpr std::size_t frame_bytes = manifest_header_bytes + sizeof(std::uint32_t);

}  // namespace

manifest manifest_reader::read() const {
  const auto fail = [&](const std::string& problem) {
    throw_io_error("checkpoint", path_, "not a manifest that can be read: " + problem);
  };
  if (!bytes_.starts_with(manifest_magic))
    fail("it does not begin with '" + std::string(manifest_magic) + "'");
  if (bytes_.size() < 12) fail("it ends within the version");
  const auto version = number_at<std::uint32_t>(bytes_, 8);
  if (version != manifest::version)
    throw_io_error("checkpoint", path_,
                   "it has format version " + std::to_string(version) + ", and this ferry reads version " +
                       std::to_string(manifest::version) +
                       (version > manifest::version ? ": a newer ferry wrote it" : ""));
  if (bytes_.size() < frame_bytes) fail("it ends within its header");
  if (number_at<std::uint32_t>(bytes_, 12) != 0) fail("its reserved field is not zero");
  const auto body = number_at<std::uint64_t>(bytes_, 24);
  if (body != bytes_.size() - frame_bytes)
    fail("its body should have " + std::to_string(body) + " bytes, but the file has " +
         std::to_string(bytes_.size()) + " bytes, " + std::to_string(frame_bytes) +
         " of them around the body");
  const std::size_t end = bytes_.size() - sizeof(std::uint32_t);
  const auto stored = number_at<std::uint32_t>(bytes_, end);
  if (const auto checksum = crc32c(bytes_.data(), end); checksum != stored)
    fail("it is damaged: its checksum is " + std::to_string(stored) + ", that of its bytes " +
         std::to_string(checksum));
  manifest content;
  content.number = number_at<std::uint64_t>(bytes_, 16);
  read_body(content);
  manifest_check(content, path_).run();
  return content;
}

void manifest_reader::read_body(manifest& content) const {
  read_manifest_body_v2(bytes_.substr(manifest_header_bytes, bytes_.size() - frame_bytes), path_, content);
}

bool manifest_reader::is_manifest() const {
  const bool has_frame =
      bytes_.size() >= frame_bytes && number_at<std::uint64_t>(bytes_, 24) == bytes_.size() - frame_bytes;
  return has_frame || bytes_.starts_with(manifest_magic);
}

std::uint64_t manifest_reader::last_data_file() const {
  if (bytes_.size() < 24) return std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = number_at<std::uint64_t>(bytes_, 16);
  manifest content;
  try {
    if (bytes_.size() >= frame_bytes) read_body(content);
  } catch (const io_error&) {  // what comes before the damage has been read
  }
  for (const auto& file : content.files) last = std::max(last, file.number);
  return last;
}

}  // namespace ferry::detail
