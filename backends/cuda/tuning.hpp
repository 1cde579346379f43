#pragma once

#include <cstdint>

namespace ferry::cuda {

/// Slots large enough for DMA to run at full speed, and small enough for the host's cache to hold two for each
/// worker. Sixteen teams read the link at its full rate, and few enough pages at a time; the host's memory is
/// better shared by eight workers than by more while the device reads it as well. Handing a copy to DMA takes over a
/// microsecond, in which the link moves more than the shortest run that is worth it. A meeting's chunk is what a team
/// moves between two looks at the host's progress: shorter ones cost more looks, longer ones leave more to wait for at
/// the end; long rows have up to four times as much.
struct tuning_numbers {
  std::int64_t staging_slot_bytes = std::int64_t{1} << 20;
  int staging_workers = 16;
  std::int64_t dma_run_bytes = std::int64_t{1} << 16;
  int cooperative_workers = 8;
  int ordered_teams = 16;
  int ordered_team_size = 512;
  std::int64_t meeting_chunk_bytes = std::int64_t{1} << 16;
};

}  // namespace ferry::cuda
