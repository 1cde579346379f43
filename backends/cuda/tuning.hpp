// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace ferry::cuda {

/// Tuning numbers of the CUDA backend: one set for each device generation, selected at run time by the
/// compute capability of the instance's device. Kernels are compiled for the static ones.
struct tuning_numbers {
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
  /// Bytes of a table whose rows path::ordered keeps together: what one entry of the device's TLB covers.
  std::int64_t locality_bytes = std::int64_t{1} << 21;
  /// Host threads that fill or drain the slots of staged rows.
  int row_workers = 16;
  /// Bytes of such a slot: twenty microseconds of the link, so that the gap between two transfers or kernels
  /// costs little: slots of 1 MiB reach 49 and 43 GB/s, of 256 KiB 36 and 28 (H200).
  std::int64_t row_slot_bytes = std::int64_t{1} << 20;
  /// Host threads of path::cooperative: fewer, because the device reads host memory, too.
  int cooperative_workers = 14;
  /// Bytes that a team moves between two reads of the host's progress. Shorter chunks cost more reads, longer
  /// ones more waiting at the end. Long rows have chunks up to four times as large.
  std::int64_t split_chunk_bytes = std::int64_t{1} << 16;

  /// Bytes of a slot of a copy. DMA moves slots, with an event each, so they are larger than those of rows.
  std::int64_t copy_slot_bytes = std::int64_t{1} << 21;
  /// Host threads that fill or drain the slots of a copy.
  int copy_workers = 8;
  /// Slots of such a thread: one is filled while the other is in transfer.
  int copy_slots = 2;
  /// True if host threads write slots past the caches. DMA reads what they wrote from the caches.
  bool copy_fills_past_caches = false;
  /// True if they write pageable memory past the caches.
  bool copy_drains_past_caches = true;
  /// Rows shorter than this are moved by kernels, because DMA takes the rows of a pitched copy one at a time.
  std::int64_t pitched_row_bytes = 512;
};

/// Compute capability 9.0. Measured on an H200: PCIe 5 x16, 16 host cores, CUDA 13.0.
inline constexpr tuning_numbers hopper{};

/// The sizes of a device that the numbers depend on.
struct device_size {
  int multiprocessors = 0;
  std::int64_t cache_bytes = 0;  ///< of the second level
};

/// The size that FERRY_WITHOUT=large_device gives to every device.
inline constexpr device_size small_device{16, std::int64_t{4} << 20};

/// The numbers for devices of a compute capability and size. Only Hopper has readings; the other generations
/// get its numbers, less those that depend on the size.
[[nodiscard]] constexpr tuning_numbers tuning_for([[maybe_unused]] int generation, device_size size) {
  tuning_numbers numbers = hopper;
  if (size.multiprocessors > 0) {
    numbers.multiprocessors = size.multiprocessors;
    numbers.teams_that_search = 2 * std::int64_t{size.multiprocessors};
    numbers.threads_that_pool = 1280 * std::int64_t{size.multiprocessors};
  }
  // A claim takes 16 bytes of the table, 4 for its slot's number and at least 4 of the index.
  constexpr std::int64_t bytes_of_a_claim = 24;
  if (const std::int64_t claims = size.cache_bytes / bytes_of_a_claim; claims > 0)
    numbers.most_for_winners = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(claims)));
  return numbers;
}
static_assert(tuning_for(9, {132, std::int64_t{60} << 20}).most_for_winners == hopper.most_for_winners &&
                  tuning_for(9, {132, std::int64_t{50} << 20}).most_for_winners == hopper.most_for_winners,
              "the size of an H200 and that of an H100 give the numbers that were measured");

}  // namespace ferry::cuda
