// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

/// The body of a manifest of format version 1: little-endian numbers, texts with their length before them.
/// Throws io_error where it ends too early, or late; sizes and places are checked by its caller.
class manifest_body_v1 {
 public:
  /// `path` is for messages.
  manifest_body_v1(std::string_view bytes, const std::string& path) : rest_(bytes), path_(path) {}

  void read(manifest& content) {
    read_list(content.files, 16, "data files", [&](manifest_file& file) {
      file.number = number<std::uint64_t>("a data file");
      file.bytes = number<std::uint64_t>("a data file");
    });
    read_list(content.entries, 14, "entries", [&](manifest_entry& entry) { read_entry(entry); });
    if (!rest_.empty()) fail(std::to_string(rest_.size()) + " bytes follow its last entry");
  }

 private:
  [[noreturn]] void fail(const std::string& subject) const {
    throw_io_error("checkpoint", path_, "not a manifest that can be read: " + subject);
  }
  template <class Number>
  Number number(const char* subject) {
    Number value{};
    if (rest_.size() < sizeof value) fail(std::string("it ends within ") + subject);
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text(const char* subject) {
    const auto length = number<std::uint16_t>(subject);
    if (rest_.size() < length) fail(std::string("it ends within ") + subject);
    std::string words(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return words;
  }
  /// A list whose items have at least `least` bytes each. The number of items is checked against the bytes
  /// that are left before memory is taken.
  template <class Item, class Read>
  void read_list(std::vector<Item>& list, std::size_t least, const char* subject, const Read& read_item) {
    const std::size_t count = number<std::uint32_t>(subject);
    if (count > rest_.size() / least)
      fail("it names " + std::to_string(count) + " " + subject + ", for which its rest of " +
           std::to_string(rest_.size()) + " bytes is too short");
    list.resize(count);
    for (auto& item : list) read_item(item);
  }

  void read_entry(manifest_entry& entry) {
    entry.name = text("the name of an entry");
    entry.kind = text("the kind of an entry");
    read_list(entry.facts, 5, "facts", [&](manifest_fact& fact) { read_fact(fact); });
    read_list(entry.arrays, 29, "arrays", [&](manifest_array& array) { read_array(array); });
  }
  void read_fact(manifest_fact& fact) {
    fact.name = text("the name of a fact");
    const auto kind = number<std::uint8_t>("the kind of a fact");
    if (kind < manifest_fact::text || kind > manifest_fact::natural)
      fail("fact '" + fact.name + "' is of the unknown kind " + std::to_string(kind));
    fact.kind = static_cast<manifest_fact::kind_of>(kind);
    if (fact.kind == manifest_fact::text)
      fact.words = text("a fact");
    else
      read_list(fact.numbers, 8, "numbers",
                [&](std::uint64_t& bits) { bits = number<std::uint64_t>("a number"); });
  }
  void read_array(manifest_array& array) {
    array.name = text("the name of an array");
    array.dtype = text("the type of an array");
    array.element_bytes = number<std::uint32_t>("an array");
    array.extents.resize(number<std::uint8_t>("an array"));
    for (auto& extent : array.extents) extent = number<std::uint64_t>("an extent");
    array.chunk_bytes = number<std::uint64_t>("an array");
    array.unit_bytes = number<std::uint32_t>("an array");
    read_list(array.chunks, 20, "chunks", [&](manifest_chunk& chunk) {
      chunk.piece = piece();
      read_list(chunk.patches, 20, "patches", [&](manifest_patch& patch) {
        patch.piece = piece();
        patch.units = number<std::uint32_t>("a patch");
      });
    });
  }
  manifest_piece piece() {
    manifest_piece place;
    place.file = number<std::uint32_t>("a piece");
    place.offset = number<std::uint64_t>("a piece");
    place.checksum = number<std::uint32_t>("a piece");
    return place;
  }

  std::string_view rest_;
  const std::string& path_;
};

}  // namespace ferry::detail
