// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>

namespace ferry::cuda {

/// Conversions from and to numbers of 8 and 16 bits by instructions.
struct encoding_functions {
  /// The bits of the nearest number of the format E5M2 (`Five`), else E4M3 without infinity: ties go to even,
  /// values beyond the largest number to that. Returns false if the device that is compiled for has no such
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

  /// encode_byte of four values, for the bytes of a word, lowest first.
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool encode_four_bytes([[maybe_unused]] const float (&value)[4],
                                                            [[maybe_unused]] std::uint32_t& word) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    constexpr auto format = Five ? __NV_E5M2 : __NV_E4M3;
    const std::uint32_t low =
        __nv_cvt_float2_to_fp8x2(make_float2(value[0], value[1]), __NV_SATFINITE, format);
    const std::uint32_t high =
        __nv_cvt_float2_to_fp8x2(make_float2(value[2], value[3]), __NV_SATFINITE, format);
    word = low | high << 16;
    return true;
#else
    return false;
#endif
  }

  /// The number of the format E5M2 (`Five`), else E4M3 without infinity, with these bits. NaN loses its sign.
  /// Returns false if the device that is compiled for has no such instruction.
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

  /// The numbers of the format E5M2 (`Five`), else E4M3 without infinity, in the bytes of a word, lowest
  /// first. NaN loses its sign. Returns false if the device that is compiled for has no such instruction.
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_four_bytes([[maybe_unused]] std::uint32_t word,
                                                            [[maybe_unused]] float (&value)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    for (int pair = 0; pair < 2; ++pair) {
      const auto halves = __nv_cvt_fp8x2_to_halfraw2(
          static_cast<__nv_fp8x2_storage_t>(word >> (16 * pair) & 0xffffu), Five ? __NV_E5M2 : __NV_E4M3);
      const float2 numbers = __half22float2(__half2(halves));
      value[2 * pair] = numbers.x;
      value[2 * pair + 1] = numbers.y;
    }
    return true;
#else
    return false;
#endif
  }

  /// The numbers of the format E2M1 in the halves of the bytes of a word, lowest first. Returns false if
  /// the device that is compiled for has no such instruction.
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_eight_nibbles([[maybe_unused]] std::uint32_t word,
                                                               [[maybe_unused]] float (&value)[8]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    // Exponent, mantissa and sign of nibble k in the lower half and of nibble k + 4 in the upper one: as
    // binary16 they are 2^-14 of the numbers.
    const __half2 factor = __half2half2(__ushort_as_half(0x7400));
    for (int k = 0; k < 4; ++k) {
      const std::uint32_t magnitudes = k < 3 ? word << (9 - 4 * k) : word >> 3;
      const std::uint32_t bits = (magnitudes & 0x0e000e00u) | (word << (12 - 4 * k) & 0x80008000u);
      __half2 halves;
      std::memcpy(&halves, &bits, sizeof halves);
      const float2 numbers = __half22float2(__hmul2(halves, factor));
      value[k] = numbers.x;
      value[k + 4] = numbers.y;
    }
    return true;
#else
    return false;
#endif
  }

  /// The numbers that the bytes of a word are, lowest first: 2^23 with a byte as its lowest bits, less 2^23.
  /// A device adds more numbers than it converts. Returns false if this is no device.
  KOKKOS_FORCEINLINE_FUNCTION static bool widen_four_bytes([[maybe_unused]] std::uint32_t word,
                                                           [[maybe_unused]] float (&value)[4]) {
#if defined(__CUDA_ARCH__)
    for (unsigned k = 0; k < 4; ++k)
      value[k] = __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + k)) - 0x1p23f;
    return true;
#else
    return false;
#endif
  }

  /// The numbers of the format binary16 in the halves of a word, the lower one first. NaN loses its bits.
  KOKKOS_FORCEINLINE_FUNCTION static bool widen_two([[maybe_unused]] std::uint32_t word,
                                                    [[maybe_unused]] float& first,
                                                    [[maybe_unused]] float& second) {
#if defined(__CUDA_ARCH__)
    __half2 halves;
    std::memcpy(&halves, &word, sizeof halves);
    first = __low2float(halves);
    second = __high2float(halves);
    return true;
#else
    return false;
#endif
  }

  /// The bits of the nearest bfloat16 (`Brain`), else binary16, of two numbers, the first one in the lower
  /// half: ties to even. Returns false if the device that is compiled for has no such instruction. The
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
