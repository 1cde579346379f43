// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace ferry::cuda {

/// Conversions from and to numbers of 8 and 16 bits by instructions.
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

  /// The number of the format E5M2 (`Five`), else E4M3 without infinity, with these bits. NaN loses its sign.
  /// Returns false where the device that is compiled for has no such instruction.
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_byte([[maybe_unused]] std::uint32_t bits,
                                                      [[maybe_unused]] float& value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    const auto half =
        __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), Five ? __NV_E5M2 : __NV_E4M3);
    value = __half2float(__half(half));
    return true;
#else
    return false;
#endif
  }

  /// The bits of the nearest bfloat16 (`Brain`), else binary16, of two numbers, the first one in the lower
  /// half: ties to even. Returns false where the device that is compiled for has no such instruction. The
  /// bits of NaN are unspecified.
  template <bool Brain>
  KOKKOS_FORCEINLINE_FUNCTION static bool narrow_two([[maybe_unused]] float first,
                                                     [[maybe_unused]] float second,
                                                     [[maybe_unused]] std::uint32_t& bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (Brain) {
      const __nv_bfloat162_raw pair = __floats2bfloat162_rn(first, second);
      bits = pair.x | static_cast<std::uint32_t>(pair.y) << 16;
    } else {
      const __half2_raw pair = __floats2half2_rn(first, second);
      bits = pair.x | static_cast<std::uint32_t>(pair.y) << 16;
    }
    return true;
#else
    return false;
#endif
  }
};

}  // namespace ferry::cuda
