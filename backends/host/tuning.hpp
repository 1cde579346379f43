#pragma once

#include <cstdint>

namespace ferry::host {

/// Tuning numbers of the host backend.
struct tuning_numbers {
  std::int64_t ring_slot_bytes = std::int64_t{1} << 18;
  int staging_workers = 16;
  std::int64_t dma_run_bytes = std::int64_t{1} << 16;
};

}  // namespace ferry::host
