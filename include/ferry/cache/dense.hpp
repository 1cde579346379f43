// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>

#include <cstdint>
#include <string_view>

namespace ferry::cache {

/// A directory with an entry of 4 bytes for every row of the table. A lookup reads one sector of memory, and
/// any rows can be cached together.
struct dense {
  static constexpr std::string_view name = "cache::dense";  ///< see ferry::DirectoryPolicy
  /// Always.
  [[nodiscard]] static constexpr bool is_dense(std::int64_t, std::int64_t) { return true; }
};
static_assert(DirectoryPolicy<dense>);

}  // namespace ferry::cache
