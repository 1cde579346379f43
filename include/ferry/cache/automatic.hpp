// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::cache {

/// The default: dense while its entries take at most a quarter of the bytes of the cached rows, else sets.
struct automatic {
  static constexpr std::string_view name = "cache::automatic";  ///< see ferry::DirectoryPolicy
  /// True if 4 bytes per row are at most a quarter of the cached bytes.
  [[nodiscard]] static constexpr bool is_dense(std::int64_t rows, std::int64_t cached_bytes) {
    return rows <= cached_bytes / 16;
  }
};
static_assert(DirectoryPolicy<automatic>);

}  // namespace ferry::cache
