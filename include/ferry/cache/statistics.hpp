// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::cache {

/// The counts of a cached_table so far. Positions are elements of index arrays: a row that comes three times
/// counts three times.
struct statistics {
  std::uint64_t hits = 0;         ///< positions whose row was in device memory
  std::uint64_t misses = 0;       ///< positions whose row was in host memory
  std::uint64_t bytes_saved = 0;  ///< bytes of the hits' rows, each way that a verb moved them
  std::uint64_t refreshes = 0;    ///< refreshes of rows
  std::uint64_t rows_loaded = 0;  ///< rows that refreshes brought into device memory
  /// Seconds of device time that refreshes took. The parts of a refresh that run next to verbs count in
  /// full. The first fill of the cache is no refresh.
  double refresh_seconds = 0.0;

  /// The share of the hits, 0 before the first position.
  [[nodiscard]] double hit_rate() const {
    const auto positions = static_cast<double>(hits) + static_cast<double>(misses);
    return positions > 0.0 ? static_cast<double>(hits) / positions : 0.0;
  }
};

}  // namespace ferry::cache
