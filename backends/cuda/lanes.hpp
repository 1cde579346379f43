// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

namespace ferry::cuda {

/// The vector lanes of one thread of a team, for kernels: a power of two, at most a warp. Kokkos' loops over
/// them compare, branch and reduce through local memory.
class lane_group {
 public:
  static constexpr int most_lanes = 32;

  KOKKOS_FORCEINLINE_FUNCTION explicit lane_group(int lanes) : lanes_(lanes) {}

  /// The lanes of a thread in this launch: at least those of its row, which may be narrower than others.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static int lanes() {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(blockDim.x);))
    KOKKOS_IF_ON_HOST((return 1;))
  }
  /// The number of the calling lane.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static int lane() {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(threadIdx.x);))
    KOKKOS_IF_ON_HOST((return 0;))
  }
  /// The values of all lanes joined, in every lane: those of l and l ^ 16 first, then of l and l ^ 8, 4, 2,
  /// 1. Value: of 4 or 8 bytes; join is commutative.
  template <class Value, class Join>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION Value joined(Value value, const Join& join) const {
    return joined_among(lanes_, value, join);
  }
  /// The values of neighbouring lanes alone, whose number is a power of two: no others need to call it.
  template <class Value, class Join>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static Value joined_among([[maybe_unused]] int count, Value value,
                                                                      [[maybe_unused]] const Join& join) {
    KOKKOS_IF_ON_DEVICE((
        if (warp_is_whole(count)) {
          for (int distance = warp / 2; distance > 0; distance /= 2)
            if (distance < count) value = join(value, __shfl_xor_sync(whole_warp, value, distance));
        } else {
          for (int distance = count / 2; distance > 0; distance /= 2)
            value = join(value, __shfl_xor_sync(mask(count), value, distance));
        }))
    return value;
  }
  /// Returns when all lanes have called it, with their writes before it visible to all of them.
  KOKKOS_FORCEINLINE_FUNCTION void meet() const {
    KOKKOS_IF_ON_DEVICE((if (warp_is_whole(lanes_)) __syncwarp(); else __syncwarp(mask(lanes_));))
  }

 private:
  static constexpr int warp = 32;
  static constexpr unsigned whole_warp = 0xffffffffu;

  /// True if all lanes of the warp have come together, those of other groups as well. Then no mask is needed,
  /// which each shuffle would compare with those of all lanes. `count`: lanes of a group.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static bool warp_is_whole([[maybe_unused]] int count) {
    KOKKOS_IF_ON_DEVICE((return count == warp || __activemask() == whole_warp;))
    KOKKOS_IF_ON_HOST((return true;))
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static unsigned mask([[maybe_unused]] int count) {
    KOKKOS_IF_ON_DEVICE((const unsigned lane = (threadIdx.y * blockDim.x + threadIdx.x) % warp;
                         return ((1u << count) - 1u) << (lane & ~(static_cast<unsigned>(count) - 1u));))
    KOKKOS_IF_ON_HOST((return whole_warp;))
  }

  int lanes_;
};

struct lane_functions {
  using lane_group = cuda::lane_group;
};

}  // namespace ferry::cuda
