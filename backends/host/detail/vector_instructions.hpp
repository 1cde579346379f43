// SPDX-License-Identifier: Apache-2.0
#pragma once

/// x86 instructions that vector types have no operator for, by gcc's own names: its headers would take it 15
/// milliseconds a source, and most of a second if AVX may be used.
#if defined(__SSE2__)
#if defined(__clang__)
#include <immintrin.h>
#endif

namespace ferry::host {

using two_words = long long __attribute__((vector_size(16)));

/// Stores past the caches. The address is a multiple of 16.
[[gnu::always_inline]] inline void stream(void* target, two_words unit) {
#if defined(__clang__)
  _mm_stream_si128(static_cast<__m128i*>(target), unit);
#else
  __builtin_ia32_movntdq(static_cast<two_words*>(target), unit);
#endif
}
/// Orders such stores before later ones.
[[gnu::always_inline]] inline void end_streams() {
#if defined(__clang__)
  _mm_sfence();
#else
  __builtin_ia32_sfence();
#endif
}

// Not with nvcc, which would parse the vectors for the device, too.
#if !defined(__CUDACC__)
using four_floats = float __attribute__((vector_size(16)));
using two_doubles = double __attribute__((vector_size(16)));

/// Square roots of all numbers of a vector of 16 bytes, or of one number.
/// @{
#if defined(__clang__)
[[gnu::always_inline]] inline float square_roots(float numbers) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(numbers)));
}
[[gnu::always_inline]] inline double square_roots(double numbers) {
  return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(numbers), _mm_set_sd(numbers)));
}
[[gnu::always_inline]] inline four_floats square_roots(four_floats numbers) { return _mm_sqrt_ps(numbers); }
[[gnu::always_inline]] inline two_doubles square_roots(two_doubles numbers) { return _mm_sqrt_pd(numbers); }
#else
[[gnu::always_inline]] inline float square_roots(float numbers) {
  return __builtin_ia32_sqrtss(four_floats{numbers})[0];
}
[[gnu::always_inline]] inline double square_roots(double numbers) {
  return __builtin_ia32_sqrtsd(two_doubles{numbers})[0];
}
[[gnu::always_inline]] inline four_floats square_roots(four_floats numbers) {
  return __builtin_ia32_sqrtps(numbers);
}
[[gnu::always_inline]] inline two_doubles square_roots(two_doubles numbers) {
  return __builtin_ia32_sqrtpd(numbers);
}
#endif
/// @}
#endif

}  // namespace ferry::host
#endif
