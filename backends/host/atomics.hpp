// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::host {

/// A host has no additions beyond Kokkos' atomics, and its kernels use none: each row belongs to one thread.
struct atomic_functions {
  static bool add_packet(float*, const float (&)[4]) { return false; }
  template <bool Brain>
  static bool add_packet(std::uint16_t*, const std::uint16_t (&)[4]) {
    return false;
  }
  template <bool Brain>
  static bool add_one(std::uint16_t*, std::uint16_t) {
    return false;
  }
};

}  // namespace ferry::host
