#pragma once

#include <cstdint>

namespace ferry::host {

/// Tuning numbers of the host backend.
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
};

}  // namespace ferry::host
