#pragma once

#include <cstdint>

namespace ferry::cuda {

/// Slots of 4 MiB: large enough for DMA to run at full speed, small enough for the host's cache.
struct tuning_numbers {
  std::int64_t staging_slot_bytes = std::int64_t{1} << 22;
};

}  // namespace ferry::cuda
