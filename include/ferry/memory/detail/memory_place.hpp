// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry {

/// How a block of memory was made, according to the device's runtime.
enum class memory_kind {
  host,         ///< ordinary host memory
  page_locked,  ///< host memory that the device reaches at the same address
  managed,      ///< memory that host and device reach at one address and whose pages may move
  device        ///< memory of one device
};

/// The memory of an address. `device` is the device of kind device; of other kinds the one that Kokkos uses.
struct memory_place {
  memory_kind kind = memory_kind::host;
  int device = 0;
};

/// DLPack's device types for the memory of one backend.
struct dlpack_codes {
  std::int32_t device;
  std::int32_t page_locked;
  std::int32_t managed;
};

}  // namespace ferry
