// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::host {

/// A host has no atomics beyond Kokkos'. Its kernels add without: each row belongs to one thread.
struct atomic_functions {
  static unsigned long long atomic_read(const unsigned long long* word) { return Kokkos::atomic_load(word); }
  static void atomic_raise(unsigned long long* target, unsigned long long value) {
    Kokkos::atomic_max(target, value);
  }
  static void atomic_lower(unsigned long long* target, unsigned long long value) {
    Kokkos::atomic_min(target, value);
  }
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
