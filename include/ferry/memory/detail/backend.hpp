// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
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

}  // namespace ferry
