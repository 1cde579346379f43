// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry {

/// The backend that provides the four memory spaces; ferry.hpp defines it. Headers name it through a template
/// parameter (`device_backend<Space>`), so they need no backend to compile. backends/README.md lists its
/// members.
template <class Dependent>
struct device_backend;

/// A block of memory from a backend.
struct memory_block {
  void* data = nullptr;
  std::size_t bytes = 0;
  /// How the backend made the block; passed back to it on release.
  int provenance = 0;
  /// Which NUMA placement the backend requested; 0 for the default of the system.
  int placement = 0;
  /// The device of the memory, or the one that it was placed near; -1 if the backend has only one.
  int device = -1;
};

/// How another process opens an allocation: bytes of the backend, and how many bytes after the address that
/// they open the allocation begins.
struct exported_memory {
  std::array<unsigned char, 64> token{};
  std::size_t offset = 0;
};

/// The identity of a device, the same in all processes.
using device_uuid = std::array<unsigned char, 16>;

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
