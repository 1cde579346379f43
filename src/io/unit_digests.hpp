// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::detail {

/// 128 bits that tell the bytes of units apart.
struct unit_digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  [[nodiscard]] bool operator==(const unit_digest&) const = default;
};

/// The function that makes digests: those of two functions can't be compared. A file holds the numbers.
enum class digest_kind : std::uint64_t { none = 0, xxh3 = 1, by_device = 2 };

/// The digests of an array's units, in their order.
struct array_digests {
  digest_kind kind = digest_kind::none;
  std::vector<unit_digest> units;
};

/// XXH3 of 128 bits.
unit_digest digest_of(const std::byte* data, std::size_t bytes);

/// Writes the digests of a manifest's arrays, in its order, into a file of their own. They hold if the manifest
/// becomes the newest generation of the folder.
void write_digests(const std::string& folder, const manifest& content,
                   const std::vector<array_digests>& arrays);
/// Reads the digests of a manifest of the folder; none if they are missing, damaged, or another manifest's.
std::vector<array_digests> read_digests(const std::string& folder, const manifest& content);

}  // namespace ferry::detail
