#pragma once

#include <cstdint>

namespace ferry::host {

/// What the host backend's loops are cut to.
struct tuning_numbers {
  std::int64_t staging_slot_bytes = std::int64_t{1} << 20;
  int staging_workers = 16;
  int cooperative_workers = 8;
  int ordered_teams = 16;
  int ordered_team_size = 512;
  std::int64_t meeting_chunk_bytes = std::int64_t{1} << 16;
};

}  // namespace ferry::host
