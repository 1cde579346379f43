// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Sums over a row, in the order that row_sum_order defines.
template <class Compute, int N>
struct row_sums {
  Compute value[N];

  KOKKOS_FUNCTION row_sums() {
    for (int s = 0; s < N; ++s) value[s] = Compute(0);
  }
  KOKKOS_FUNCTION row_sums& operator+=(const row_sums& addend) {
    for (int s = 0; s < N; ++s) value[s] += addend.value[s];
    return *this;
  }
};

/// The order of additions over a row. It is the same on every backend, so sums are identical to the last bit.
/// Element i is added to place i % 128, in order. Four neighbouring places a, b, c and d make one of 32
/// lanes: (a + b) + (c + d). Lanes are added as a tree: lane l and l + 16, then l + 8, 4, 2, 1. These are the
/// shuffles of a warp, in which lanes without elements add zeros.
struct row_sum_order {
  static constexpr int lanes = 32;
  static constexpr int lane_width = 4;
  static constexpr int places = lanes * lane_width;

  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute lane_of(const Compute* place) {
    return (place[0] + place[1]) + (place[2] + place[3]);
  }
  /// Sums the first `used` places. The others are zeros, which change no sum and are left out: no place is
  /// -0.
  template <class Compute>
  KOKKOS_FUNCTION static Compute total(const Compute (&place)[places], int count) {
    if (count == 0) return Compute(0);
    Compute lane[lanes];
    const int whole = count / lane_width;
    for (int l = 0; l < whole; ++l) lane[l] = lane_of(place + l * lane_width);
    int live = whole;
    if (const int left = count % lane_width; left > 0) {
      const Compute* last = place + whole * lane_width;
      const Compute second = left > 1 ? last[1] : Compute(0);
      lane[live++] = (last[0] + second) + (left > 2 ? last[2] : Compute(0));
    }
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half && l + half < live; ++l) lane[l] += lane[l + half];
    return lane[0];
  }
};

}  // namespace ferry::kernels

template <class Compute, int N>
struct Kokkos::reduction_identity<ferry::kernels::row_sums<Compute, N>> {
  KOKKOS_FORCEINLINE_FUNCTION static ferry::kernels::row_sums<Compute, N> sum() { return {}; }
};
