// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  /// The device of the memory, or the one that it was placed near; -1 where the backend has only one.
  int device = -1;
};

}  // namespace ferry
