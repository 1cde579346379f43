// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::host {

/// Tuning numbers of hosts. There all paths are loops over one memory, so only the slots remain.
struct tuning_numbers {
  /// A kernel that reads and writes at most this many bytes runs in the calling thread. To wake a second
  /// thread took 8 us when threads sleep and 1.5 us when they spin (two cores of an AMD Zen 4, other work
  /// on both). One thread gathers these bytes in 6 us. A smaller number gains when threads spin, a larger
  /// one when they sleep.
  std::int64_t caller_bytes = std::int64_t{1} << 17;
  /// Bytes of a table whose rows path::ordered keeps together: what one entry of the device's TLB covers.
  std::int64_t locality_bytes = std::int64_t{1} << 21;
  /// Host threads that fill or drain the slots of staged rows.
  int row_workers = 16;
  /// Bytes of such a slot: twenty microseconds of a link, so that the gap between two transfers or kernels
  /// costs little: slots of 1 MiB reach 49 and 43 GB/s, of 256 KiB 36 and 28 (H200).
  std::int64_t row_slot_bytes = std::int64_t{1} << 20;
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

}  // namespace ferry::host
