// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/tuning.hpp"

#include <cstdint>

namespace ferry {

/// Tuning numbers of a device. Those of an H200 stand here: other devices take them, less those that depend
/// on the size, until they are measured. Kernels are compiled for the static ones. The numbers of slots, and
/// of a backend whose device is the host, are those of hosts.
struct device_tuning : host::tuning_numbers {
  /// Threads per team of path::ordered and of the kernels that access slots: with 16 teams, 512 threads have
  /// enough rows in flight to fill the link.
  static constexpr int ordered_team_size = 512;
  /// Threads per team if a team works on whole rows, all teams at once.
  static constexpr int flat_team_size = 256;
  /// Teams of such a launch. The teams loop over the rows beyond.
  static constexpr std::int64_t most_flat_teams = std::int64_t{1} << 20;
  int multiprocessors = 132;  ///< of the device

  /// Most keys that are sorted by comparing all of them, without the barriers of a grid. A plan of 1024 keys
  /// takes 7.5 us on the device, one of 2048 keys 11, and one of 4096 would take 18 as with a grid (H200).
  /// Static, because the scratch memory of a plan depends on it.
  static constexpr std::int64_t keys_compared = 2048;

  /// Most positions of a batch without a plan that are searched in place of a sort, for rows in device
  /// memory. A search of 2048 takes as long as a sort and an update if all name two rows.
  std::int64_t positions_searched = 2048;
  /// Fewest positions whose winners a scatter finds in a hash table. Clearing the table is a launch more than
  /// the plan of fewer positions.
  std::int64_t least_for_winners = keys_compared + 1;
  /// Most such positions: their hash table, 32 MiB, fits the second-level cache next to their slots. Computed
  /// from the size of that cache.
  std::int64_t most_for_winners = std::int64_t{1} << 21;
  /// Teams of a search, each of which reads all indices: two for each multiprocessor. Computed from their
  /// number.
  std::int64_t teams_that_search = 264;
  /// Threads that pool bags at once, in kernels of 48 registers. If bags have fewer, a kernel of its own sums
  /// the pieces of long ones. Computed from the number of multiprocessors.
  std::int64_t threads_that_pool = std::int64_t{132} * 1280;
  /// Teams of path::ordered: enough to saturate the link, and few, so that they touch few pages at a time.
  int ordered_teams = 16;
  /// Host threads of path::cooperative: fewer, because the device reads host memory, too.
  int cooperative_workers = 14;
  /// Bytes that a team moves between two reads of the host's progress. Shorter chunks cost more reads, longer
  /// ones more waiting at the end. Long rows have chunks up to four times as large.
  std::int64_t split_chunk_bytes = std::int64_t{1} << 16;

  /// The numbers that depend on the size of the device.
  [[nodiscard]] constexpr device_tuning for_multiprocessors(int count) const {
    device_tuning numbers = *this;
    numbers.multiprocessors = count;
    numbers.teams_that_search = 2 * std::int64_t{count};
    numbers.threads_that_pool = 1280 * std::int64_t{count};
    return numbers;
  }
};

}  // namespace ferry
