// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cuda_fp8.h>

#include <cstdint>

namespace ferry::cuda {

/// Conversions to numbers of 8 bits by instructions.
struct encoding_functions {
  /// The bits of the nearest number of the format E5M2 (`Five`), else E4M3 without infinity: ties to even,
  /// the largest number beyond it. Returns false where the device that is compiled for has no such
  /// instruction. The bits of NaN are unspecified.
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool encode_byte([[maybe_unused]] float value,
                                                      [[maybe_unused]] std::uint8_t& bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, Five ? __NV_E5M2 : __NV_E4M3);
    return true;
#else
    return false;
#endif
  }
};

}  // namespace ferry::cuda
