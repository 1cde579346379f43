// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../rounded.hpp"

#include <Kokkos_Core.hpp>

namespace ferry::cuda {

struct arithmetic_functions {
  template <class T>
  using number = kernels::rounded<T>;

  /// result = the lesser or the greater of two numbers, NaN if one of them is. They return false if the
  /// device that is compiled for has no such instruction.
  /// @{
  KOKKOS_FORCEINLINE_FUNCTION static bool lesser([[maybe_unused]] float a, [[maybe_unused]] float b,
                                                 [[maybe_unused]] float& result) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return true;
#else
    return false;
#endif
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool greater([[maybe_unused]] float a, [[maybe_unused]] float b,
                                                  [[maybe_unused]] float& result) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return true;
#else
    return false;
#endif
  }
  /// @}
};

}  // namespace ferry::cuda
