// SPDX-License-Identifier: Apache-2.0
#include "unit_digests.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/file.hpp>

#define XXH_INLINE_ALL  // no program has to link it
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

static_assert(XXH_VERSION_NUMBER >= 800,
              "ferry: digests of checkpoints need xxHash 0.8, from which on XXH3 stays as it is.");

namespace ferry::detail {
namespace {

/// The bytes of the file before the arrays: its format, and the manifest that it belongs to.
std::string digests_header(const manifest& content) {
  constexpr std::uint64_t version = 1;
  const std::string bytes = encode(content);
  const unit_digest owner = digest_of(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  std::string header(digests_magic);
  header.append(reinterpret_cast<const char*>(&version), sizeof version);
  return header.append(reinterpret_cast<const char*>(&owner), sizeof owner);
}

}  // namespace

unit_digest digest_of(const std::byte* data, std::size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

void write_digests(const std::string& folder, const manifest& content,
                   const std::vector<array_digests>& arrays) {
  std::string bytes = digests_header(content);
  const auto append = [&](const void* data, std::size_t count) {
    bytes.append(static_cast<const char*>(data), count);
  };
  for (const auto& array : arrays) {
    append(&array.kind, sizeof array.kind);
    append(array.units.data(), array.units.size() * sizeof(unit_digest));
  }
  const std::uint32_t checksum = crc32c(bytes.data(), bytes.size());
  append(&checksum, sizeof checksum);
  write_whole(digests_path(folder, content.number), bytes, folder);
}

std::vector<array_digests> read_digests(const std::string& folder, const manifest& content) {
  const std::string header = digests_header(content);
  std::uint64_t expected = header.size() + sizeof(std::uint32_t);
  for (const auto& entry : content.entries)
    for (const auto& array : entry.arrays)
      expected += sizeof(digest_kind) + array.unit_count() * sizeof(unit_digest);
  std::vector<array_digests> arrays;
  try {
    const file source = file::open_to_read("checkpoint", digests_path(folder, content.number));
    if (source.size() != expected) return {};
    std::string bytes(static_cast<std::size_t>(expected), '\0');
    source.read_at(bytes.data(), bytes.size(), 0);
    std::size_t next = header.size();
    const auto take = [&](void* target, std::size_t count) {
      std::memcpy(target, bytes.data() + next, count);
      next += count;
    };
    for (const auto& entry : content.entries)
      for (const auto& array : entry.arrays) {
        auto& digests = arrays.emplace_back();
        digests.units.resize(static_cast<std::size_t>(array.unit_count()));
        take(&digests.kind, sizeof digests.kind);
        take(digests.units.data(), digests.units.size() * sizeof(unit_digest));
      }
    std::uint32_t checksum = 0;
    take(&checksum, sizeof checksum);
    if (!bytes.starts_with(header) || checksum != crc32c(bytes.data(), bytes.size() - sizeof checksum))
      return {};
  } catch (const io_error&) {
    return {};
  }
  return arrays;
}

}  // namespace ferry::detail
