#pragma once

#include <cstdint>

namespace ferry::host {

/// Tuning numbers of the host backend; cuda::tuning_numbers says what they are for. On a host all paths are
/// loops over one memory, so only the ring's slots and the runs that bypass it remain.
struct tuning_numbers {
  std::int64_t locality_bytes = std::int64_t{1} << 21;
  int staging_workers = 16;
  std::int64_t ring_slot_bytes = std::int64_t{1} << 18;
  std::int64_t dma_run_bytes = std::int64_t{1} << 16;
};

}  // namespace ferry::host
