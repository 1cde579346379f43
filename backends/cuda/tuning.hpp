#pragma once

#include <cstdint>

namespace ferry::cuda {

/// Tuning numbers of the CUDA backend.
///
/// Slots keep a team busy for some microseconds; four per worker fit into the cache of the host. Sixteen
/// teams saturate the link and touch few pages at a time. With a split cursor there are fewer workers,
/// because the device reads host memory as well. A transfer of a batch takes the DMA engine more than a
/// microsecond, in which the link moves more than the shortest run. A chunk of the split cursor is what a
/// team moves between two reads of the host's progress: shorter chunks cost more reads, longer ones more
/// waiting at the end. Long rows have chunks up to four times as large.
///
/// Slots of a copy are moved by DMA, with an event each, so they are larger than those of the ring. Two per
/// thread are enough: one is filled while the other is in transfer. Host threads write slots by ordinary
/// stores, because DMA then reads them from the caches, and pageable memory past the caches. Rows shorter
/// than pitched_row_bytes are moved by kernels, because DMA takes rows one at a time.
struct tuning_numbers {
  std::int64_t ring_slot_bytes = std::int64_t{1} << 18;
  int staging_workers = 16;
  std::int64_t copy_slot_bytes = std::int64_t{1} << 21;
  int copy_workers = 8;
  int copy_slots = 2;  ///< of a worker
  bool copy_fills_past_caches = false;
  bool copy_drains_past_caches = true;
  std::int64_t pitched_row_bytes = 512;
  std::int64_t dma_run_bytes = std::int64_t{1} << 16;
  int cooperative_workers = 14;
  int ordered_teams = 16;
  int ordered_team_size = 512;
  std::int64_t split_chunk_bytes = std::int64_t{1} << 16;
};

}  // namespace ferry::cuda
