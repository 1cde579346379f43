// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/manifest_reader.hpp>

#include "crc32c.hpp"

#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/manifest.hpp>
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

/// The bytes of a manifest that have not been read yet.
class manifest_parser {
 public:
  manifest_parser(std::string_view bytes, const std::string& path) : rest_(bytes), path_(path) {}

  [[nodiscard]] manifest read();

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void require_version(std::uint32_t found) const;

  template <class Number>
  Number number(const char* what) {
    Number made{};
    if (rest_.size() < sizeof made) fail(std::string("it ends within ") + what);
    std::memcpy(&made, rest_.data(), sizeof made);
    rest_.remove_prefix(sizeof made);
    return made;
  }
  std::string text(const char* what);
  /// A list whose items have at least `least` bytes each. The number of items is checked against the bytes
  /// that are left before memory is taken.
  template <class Item, class Read>
  void read_list(std::vector<Item>& to, std::size_t least, const char* what, const Read& read) {
    const std::size_t count = number<std::uint32_t>(what);
    if (count > rest_.size() / least)
      fail("it names " + std::to_string(count) + " " + what + ", for which its rest of " +
           std::to_string(rest_.size()) + " bytes is too short");
    to.resize(count);
    for (auto& each : to) read(each);
  }
  template <class Named>
  void require_unique(const std::vector<Named>& of, const char* what) const {
    std::vector<std::string_view> names;
    names.reserve(of.size());
    for (const auto& each : of) names.push_back(each.name);
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
      fail("two of its " + std::string(what) + " are named '" + std::string(*twice) + "'");
  }

  void read_files(manifest& to);

  void read_entry(const manifest& whole, manifest_entry& to);

  void read_fact(manifest_fact& to);

  void read_array(const manifest& whole, manifest_array& to);

  manifest_piece piece();
  void read_piece(const manifest& whole, manifest_piece& to, std::uint64_t bytes);
  void require_within(const manifest& whole, const manifest_piece& of, std::uint64_t bytes) const;

  static constexpr std::uint64_t most_bytes = std::numeric_limits<std::int64_t>::max();

  std::string_view rest_;
  const std::string& path_;
  std::uint64_t room_ = 0;  ///< bytes of the data files that no array has taken
};

manifest manifest_parser::read() {
  const std::string_view all = rest_;
  if (all.substr(0, manifest_magic.size()) != manifest_magic)
    fail("it does not begin with '" + std::string(manifest_magic) + "'");
  rest_.remove_prefix(manifest_magic.size());
  require_version(number<std::uint32_t>("the version"));
  if (number<std::uint32_t>("the reserved field") != 0) fail("its reserved field is not zero");
  manifest made;
  made.number = number<std::uint64_t>("its number");
  const auto body = number<std::uint64_t>("the length of its body");
  const std::uint64_t frame = manifest_header_bytes + sizeof(std::uint32_t);
  if (all.size() < frame || body != all.size() - frame)
    fail("its body should have " + std::to_string(body) + " bytes, but the file has " +
         std::to_string(all.size()) + " bytes, " + std::to_string(frame) + " of them around the body");
  std::uint32_t stored = 0;
  std::memcpy(&stored, all.data() + all.size() - sizeof stored, sizeof stored);
  if (const auto found = crc32c(all.data(), all.size() - sizeof stored); found != stored)
    fail("it is damaged: its checksum is " + std::to_string(stored) + ", that of its bytes " +
         std::to_string(found));
  rest_.remove_suffix(sizeof stored);
  read_files(made);
  for (const auto& each : made.files)
    room_ = each.bytes > most_bytes - room_ ? most_bytes : room_ + each.bytes;
  read_list(made.entries, 14, "entries", [&](manifest_entry& entry) { read_entry(made, entry); });
  require_unique(made.entries, "entries");
  if (!rest_.empty()) fail(std::to_string(rest_.size()) + " bytes follow its last entry");
  return made;
}

void manifest_parser::fail(const std::string& what) const {
  throw_io_error("checkpoint", path_, "not a manifest that can be read: " + what);
}

void manifest_parser::require_version(std::uint32_t found) const {
  if (found == manifest::version) return;
  throw_io_error("checkpoint", path_,
                 "it has format version " + std::to_string(found) + ", and this ferry reads version " +
                     std::to_string(manifest::version) +
                     (found > manifest::version ? ": a newer ferry wrote it" : ", the first there is"));
}

std::string manifest_parser::text(const char* what) {
  const auto length = number<std::uint16_t>(what);
  if (rest_.size() < length) fail(std::string("it ends within ") + what);
  std::string made(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return made;
}

void manifest_parser::read_files(manifest& to) {
  std::uint64_t before = 0;
  read_list(to.files, 16, "data files", [&](manifest_file& each) {
    each.number = number<std::uint64_t>("a data file");
    each.bytes = number<std::uint64_t>("a data file");
    if (each.number <= before || each.number > to.number)
      fail("data file " + std::to_string(each.number) + " is out of order");
    if (each.bytes < data_header_bytes || each.bytes > most_bytes)
      fail("data file " + std::to_string(each.number) + " can't have " + std::to_string(each.bytes) +
           " bytes");
    before = each.number;
  });
}

void manifest_parser::read_entry(const manifest& whole, manifest_entry& to) {
  to.name = text("the name of an entry");
  to.kind = text("the kind of an entry");
  read_list(to.facts, 5, "facts", [&](manifest_fact& each) { read_fact(each); });
  require_unique(to.facts, "facts");
  read_list(to.arrays, 29, "arrays", [&](manifest_array& each) { read_array(whole, each); });
  require_unique(to.arrays, "arrays");
}

void manifest_parser::read_fact(manifest_fact& to) {
  to.name = text("the name of a fact");
  const auto kind = number<std::uint8_t>("the kind of a fact");
  if (kind < manifest_fact::text || kind > manifest_fact::natural)
    fail("fact '" + to.name + "' is of the unknown kind " + std::to_string(kind));
  to.kind = static_cast<manifest_fact::kind_of>(kind);
  if (to.kind == manifest_fact::text)
    to.words = text("a fact");
  else
    read_list(to.numbers, 8, "numbers",
              [&](std::uint64_t& each) { each = number<std::uint64_t>("a number"); });
}

void manifest_parser::read_array(const manifest& whole, manifest_array& to) {
  to.name = text("the name of an array");
  to.dtype = text("the type of an array");
  to.element_bytes = number<std::uint32_t>("an array");
  const auto rank = number<std::uint8_t>("an array");
  if (to.element_bytes == 0 || to.element_bytes > largest_chunk || rank > max_rank)
    fail("array '" + to.name + "' has elements of " + std::to_string(to.element_bytes) + " bytes and rank " +
         std::to_string(rank));
  std::uint64_t bytes = to.element_bytes;
  bool empty = false;
  to.extents.resize(rank);
  for (auto& extent : to.extents) {
    extent = number<std::uint64_t>("an extent");
    empty = empty || extent == 0;
    if (extent != 0 && bytes > most_bytes / extent) fail("array '" + to.name + "' has too many bytes");
    bytes *= extent == 0 ? 1 : extent;
  }
  if (empty) bytes = 0;
  // No two chunks share bytes, so an array that is longer than the files is a lie about its memory.
  if (bytes > room_)
    fail("array '" + to.name + "' has " + std::to_string(bytes) + " bytes, more than all data files");
  room_ -= bytes;
  to.chunk_bytes = number<std::uint64_t>("an array");
  to.unit_bytes = number<std::uint32_t>("an array");
  if (to.unit_bytes == 0 || to.unit_bytes % to.element_bytes != 0 || to.chunk_bytes == 0 ||
      to.chunk_bytes > largest_chunk || to.chunk_bytes % to.unit_bytes != 0)
    fail("array '" + to.name + "' has chunks of " + std::to_string(to.chunk_bytes) + " bytes and units of " +
         std::to_string(to.unit_bytes));
  std::size_t place = 0;
  read_list(to.chunks, 20, "chunks", [&](manifest_chunk& each) {
    read_piece(whole, each.piece, place < to.chunk_count() ? to.bytes_of_chunk(place) : 0);
    read_list(each.patches, 20, "patches", [&](manifest_patch& patch) {
      patch.piece = piece();
      patch.units = number<std::uint32_t>("a patch");
      if (patch.units == 0 || patch.units > to.chunk_bytes / to.unit_bytes)
        fail("a patch of array '" + to.name + "' has " + std::to_string(patch.units) + " units");
      require_within(whole, patch.piece,
                     patch.units * (sizeof(std::uint32_t) + std::uint64_t{to.unit_bytes}));
    });
    ++place;
  });
  if (to.chunks.size() != to.chunk_count())
    fail("array '" + to.name + "' has " + std::to_string(to.chunks.size()) + " chunks instead of " +
         std::to_string(to.chunk_count()));
}

manifest_piece manifest_parser::piece() {
  manifest_piece made;
  made.file = number<std::uint32_t>("a piece");
  made.offset = number<std::uint64_t>("a piece");
  made.checksum = number<std::uint32_t>("a piece");
  return made;
}

void manifest_parser::read_piece(const manifest& whole, manifest_piece& to, std::uint64_t bytes) {
  to = piece();
  require_within(whole, to, bytes);
}

void manifest_parser::require_within(const manifest& whole, const manifest_piece& of,
                                     std::uint64_t bytes) const {
  if (of.file >= whole.files.size()) fail("a piece lies in file " + std::to_string(of.file) + " of its list");
  const manifest_file& in = whole.files[of.file];
  if (of.offset < data_header_bytes || of.offset > in.bytes || bytes > in.bytes - of.offset)
    fail(std::to_string(bytes) + " bytes at byte " + std::to_string(of.offset) + " do not lie in data file " +
         std::to_string(in.number) + ", which has " + std::to_string(in.bytes) + " bytes");
}

}  // namespace

manifest manifest_reader::read() const { return manifest_parser(bytes_, path_).read(); }

}  // namespace ferry::detail
