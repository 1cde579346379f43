// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::host {

/// Tuning numbers of the host backend; cuda::tuning_numbers says what they are for. On a host all paths are
/// loops over one memory, so only the slots remain.
struct tuning_numbers {
  /// A kernel that reads and writes at most this many bytes runs in the calling thread. To wake a second
  /// thread took 8 us when threads sleep and 1.5 us when they spin (two cores of an AMD Zen 4, other work
  /// on both). One thread gathers these bytes in 6 us. A smaller number gains when threads spin, a larger
  /// one when they sleep.
  std::int64_t caller_bytes = std::int64_t{1} << 17;
  std::int64_t locality_bytes = std::int64_t{1} << 21;
  int row_workers = 16;
  std::int64_t row_slot_bytes = std::int64_t{1} << 19;
  std::int64_t copy_slot_bytes = std::int64_t{1} << 21;
  int copy_workers = 8;
  int copy_slots = 2;
  bool copy_fills_past_caches = false;
  bool copy_drains_past_caches = true;
  std::int64_t pitched_row_bytes = 512;
};

}  // namespace ferry::host
