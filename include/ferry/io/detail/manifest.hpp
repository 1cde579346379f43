// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The content of a checkpoint's manifest. docs/checkpoints.md describes its bytes.
namespace ferry::detail {

/// The one of the list that has this name, null for none.
template <class T>
const T* find_item(const std::vector<T>& list, std::string_view name) {
  for (const auto& item : list)
    if (item.name == name) return &item;
  return nullptr;
}

/// A fact about an entry: text, or numbers of one type.
struct manifest_fact {
  /// The numbers are bit patterns of 8 bytes: of a double, a signed or an unsigned integer.
  enum kind_of : std::uint8_t { text = 1, real = 2, whole = 3, natural = 4 };

  std::string name;
  kind_of kind = text;
  std::string words;
  std::vector<std::uint64_t> numbers;

  [[nodiscard]] bool operator==(const manifest_fact&) const = default;
  /// "0.001", "(0.9, 0.999)" or "'adam'", for messages.
  [[nodiscard]] std::string describe() const;
};

/// Bytes in a data file, with their CRC-32C.
struct manifest_piece {
  std::uint32_t file = 0;  ///< position in manifest::files
  std::uint64_t offset = 0;
  std::uint32_t checksum = 0;
};

/// Units of a chunk that a later save replaced. The piece holds their positions in the chunk, one u32 each,
/// then the units.
struct manifest_patch {
  manifest_piece piece;
  std::uint32_t units = 0;
};

/// A part of an array's bytes: a piece, and the patches to apply to it in their order.
struct manifest_chunk {
  manifest_piece piece;
  std::vector<manifest_patch> patches;
};

/// An array of an entry: its elements in row-major order, cut into chunks of equal size.
struct manifest_array {
  std::string name;   ///< empty for the only array of an entry
  std::string dtype;  ///< see dtype_name
  std::uint32_t element_bytes = 1;
  std::vector<std::uint64_t> extents;
  std::uint64_t chunk_bytes = 1;  ///< of all chunks but the last
  std::uint32_t unit_bytes = 1;   ///< what patches replace
  std::vector<manifest_chunk> chunks;

  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::uint64_t bytes_of_chunk(std::size_t chunk) const;
  [[nodiscard]] std::uint64_t chunk_count() const { return (bytes() + chunk_bytes - 1) / chunk_bytes; }
  [[nodiscard]] std::uint64_t unit_count() const { return (bytes() + unit_bytes - 1) / unit_bytes; }
  /// "f32 [1000 x 128]"
  [[nodiscard]] std::string describe() const;
};

/// An object that was added to the checkpoint under one name.
struct manifest_entry {
  std::string name;
  std::string kind;  ///< "array", "rowwise_int8", "state" or "value"
  std::vector<manifest_fact> facts;
  std::vector<manifest_array> arrays;

  [[nodiscard]] const manifest_fact* fact(std::string_view key) const { return find_item(facts, key); }
  [[nodiscard]] const manifest_array* array(std::string_view key) const { return find_item(arrays, key); }
};

/// A data file: its number, which is part of its name, and its size.
struct manifest_file {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
};

struct manifest {
  static constexpr std::uint32_t version = 2;  ///< that is written

  std::uint64_t number = 0;  ///< of the save that wrote it
  std::vector<manifest_file> files;
  std::vector<manifest_entry> entries;

  [[nodiscard]] const manifest_entry* entry(std::string_view key) const { return find_item(entries, key); }
};

static_assert(std::endian::native == std::endian::little,
              "ferry: checkpoints are written and read by little-endian machines only.");

inline constexpr std::string_view manifest_magic = "ferryckp";
inline constexpr std::size_t manifest_header_bytes = 32;
inline constexpr std::uint64_t data_header_bytes = 4096;
/// Chunks are buffers in memory while a checkpoint is read, so a file can't name larger ones.
inline constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 26;
/// Manifests are in memory as a whole, so none is longer.
inline constexpr std::uint64_t longest_manifest = std::uint64_t{1} << 26;

/// CRC-32C (Castagnoli polynomial, reflected, initial and final value of all ones), as in iSCSI and ext4. The
/// checksum of "123456789" is 0xe3069283. `before` is the checksum of bytes that come before these.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

/// The bytes of a manifest: a header, a body of JSON, and the checksum of both. Texts are at most 65535 bytes
/// long, see require_name.
std::string encode(const manifest& content);

/// Reads a manifest strictly: whatever the bytes are, it throws io_error, which names the path, or returns a
/// manifest whose pieces lie within the sizes of the data files. It never takes more memory than a
/// small multiple of the bytes that it was given.
manifest decode(std::string_view bytes, const std::string& path);

/// True for the bytes of a manifest, also of a damaged or a newer one.
bool is_manifest(std::string_view bytes);
/// The last data file that a manifest which decode() refuses may need.
std::uint64_t last_data_file(std::string_view bytes);

}  // namespace ferry::detail
