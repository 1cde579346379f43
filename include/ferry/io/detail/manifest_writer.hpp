// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/manifest.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// The bytes of a manifest: a header, a body of JSON, and the checksum of both.
namespace ferry::detail {

static_assert(std::endian::native == std::endian::little,
              "ferry: checkpoints are written and read by little-endian machines only.");

inline constexpr std::string_view manifest_magic = "ferryckp";
inline constexpr std::size_t manifest_header_bytes = 32;
inline constexpr std::uint64_t data_header_bytes = 4096;
/// Of data files, which manifests of both versions name.
inline constexpr std::uint32_t data_version = 1;
/// Chunks are buffers in memory while a checkpoint is read, so a file can't name larger ones.
inline constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 26;

/// Manifests are in memory as a whole, so none is longer.
inline constexpr std::uint64_t longest_manifest = std::uint64_t{1} << 26;

/// The file's bytes. Texts are at most 65535 bytes long, see require_name.
std::string encode(const manifest& content);

}  // namespace ferry::detail
