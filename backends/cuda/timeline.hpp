// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::cuda {

struct timeline_functions {
  /// For kernels: nanoseconds, by a clock that all of them share.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t clock_in_kernel() {
#if defined(__CUDA_ARCH__)
    std::uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
#else
    return 0;
#endif
  }
};

}  // namespace ferry::cuda
