#pragma once

#include <cstdint>

namespace ferry::cuda {

/// Slots large enough for a team to be busy with for some microseconds, and small enough for the host's cache to hold
/// four for each worker. Sixteen teams read the link at its full rate, and few enough pages at a time. A split cursor has
/// fewer workers, since the device reads the host's memory as well. One of a batch of transfers takes DMA over a
/// microsecond, in which the link moves more than the shortest run that is worth it. A split cursor's chunk is what a team
/// moves between two looks at the host's progress: shorter ones cost more looks, longer ones leave more to wait for at
/// the end; long rows have up to four times as much.
struct tuning_numbers {
  std::int64_t ring_slot_bytes = std::int64_t{1} << 18;
  int staging_workers = 16;
  std::int64_t dma_run_bytes = std::int64_t{1} << 16;
  int cooperative_workers = 14;
  int ordered_teams = 16;
  int ordered_team_size = 512;
  std::int64_t split_chunk_bytes = std::int64_t{1} << 16;
};

}  // namespace ferry::cuda
