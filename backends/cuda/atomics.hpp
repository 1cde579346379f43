// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::cuda {

/// Atomics on global memory that Kokkos lacks, or has as loops of compare-and-exchange. The additions return
/// false if the device that is compiled for has no such instruction.
struct atomic_functions {
  /// Reads what other threads write by atomics.
  KOKKOS_FORCEINLINE_FUNCTION static unsigned long long atomic_read(const unsigned long long* word) {
    return *static_cast<const volatile unsigned long long*>(word);
  }
  /// *target = max(*target, value).
  KOKKOS_FORCEINLINE_FUNCTION static void atomic_raise([[maybe_unused]] unsigned long long* target,
                                                       [[maybe_unused]] unsigned long long value) {
    KOKKOS_IF_ON_DEVICE((atomicMax(target, value);))
    KOKKOS_IF_ON_HOST((Kokkos::atomic_max(target, value);))
  }
  /// *target = min(*target, value).
  KOKKOS_FORCEINLINE_FUNCTION static void atomic_lower([[maybe_unused]] unsigned long long* target,
                                                       [[maybe_unused]] unsigned long long value) {
    KOKKOS_IF_ON_DEVICE((atomicMin(target, value);))
    KOKKOS_IF_ON_HOST((Kokkos::atomic_min(target, value);))
  }

  /// Adds four floats at once; `target` is a multiple of 16.
  KOKKOS_FORCEINLINE_FUNCTION static bool add_packet([[maybe_unused]] float* target,
                                                     [[maybe_unused]] const float (&value)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(target)), "f"(value[0]), "f"(value[1]), "f"(value[2]),
                   "f"(value[3])
                 : "memory");
    return true;
#else
    return false;
#endif
  }

  /// Adds four 16-bit numbers, given by their bits, at once; `target` is a multiple of 8. Brain: of the
  /// format bfloat16, else binary16. Each sum is rounded to nearest.
  template <bool Brain>
  KOKKOS_FORCEINLINE_FUNCTION static bool add_packet([[maybe_unused]] std::uint16_t* target,
                                                     [[maybe_unused]] const std::uint16_t (&bits)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const auto low = static_cast<std::uint32_t>(bits[0]) | static_cast<std::uint32_t>(bits[1]) << 16;
    const auto high = static_cast<std::uint32_t>(bits[2]) | static_cast<std::uint32_t>(bits[3]) << 16;
    const auto address = __cvta_generic_to_global(target);
    if constexpr (Brain)
      asm volatile("red.global.add.noftz.v2.bf16x2 [%0], {%1, %2};"
                   :
                   : "l"(address), "r"(low), "r"(high)
                   : "memory");
    else
      asm volatile("red.global.add.noftz.v2.f16x2 [%0], {%1, %2};"
                   :
                   : "l"(address), "r"(low), "r"(high)
                   : "memory");
    return true;
#else
    return false;
#endif
  }

  /// Adds one 16-bit number, as above.
  template <bool Brain>
  KOKKOS_FORCEINLINE_FUNCTION static bool add_one([[maybe_unused]] std::uint16_t* target,
                                                  [[maybe_unused]] std::uint16_t bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const auto address = __cvta_generic_to_global(target);
    if constexpr (Brain)
      asm volatile("red.global.add.noftz.bf16 [%0], %1;" : : "l"(address), "h"(bits) : "memory");
    else
      asm volatile("red.global.add.noftz.f16 [%0], %1;" : : "l"(address), "h"(bits) : "memory");
    return true;
#else
    return false;
#endif
  }
};

}  // namespace ferry::cuda
