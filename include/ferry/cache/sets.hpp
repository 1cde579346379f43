// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::cache {

/// A directory of sets of 32 slots, 4 bytes per slot. Row r can be in set r % sets alone, so of rows that
/// meet in one set at most 32 are cached. A lookup reads a line of 128 bytes.
struct sets {
  static constexpr std::string_view name = "cache::sets";  ///< see ferry::DirectoryPolicy
  /// Never.
  [[nodiscard]] static constexpr bool is_dense(std::int64_t, std::int64_t) { return false; }
};
static_assert(DirectoryPolicy<sets>);

}  // namespace ferry::cache
