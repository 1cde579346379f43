// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lanes.hpp"

#include <ferry/memory/detail/backend.hpp>
#include <ferry/runtime/detail/backend.hpp>

/// Sources with FERRY_DISPATCH_AVX2, which ferry::instances defines, compile the loops of the host's kernels
/// for AVX2 as well, and take them if the processor has it. They cost a step a seventh of its compile
/// time. AVX2 without fused multiply-add: a sum of products has the bits of the other version, so it does not
/// matter from which source of a program an instantiation comes. Sources that are compiled for AVX2 or more
/// have one version.
#if defined(FERRY_DISPATCH_AVX2) && FERRY_HOST_LANES && !defined(__AVX2__)
#define FERRY_HAS_AVX2_VERSIONS 1
namespace ferry::host {

/// Bytes of the registers that kernels use on this processor; 0 for those that every x86-64 has.
inline int register_bytes() {
  static const int bytes = __builtin_cpu_supports("avx2") != 0 && !detail::without("avx2") ? 32 : 0;
  return bytes;
}

}  // namespace ferry::host

namespace ferry::kernels {

template <class Body>
[[gnu::noinline]] void run_on_any(const Body& body) {
  body(ferry::detail::register_size<0>{});
}
/// The body is compiled for AVX2 because it is inlined.
template <class Body>
[[gnu::noinline, gnu::flatten, gnu::target("avx2")]] void run_on_avx2(const Body& body) {
  body(ferry::detail::register_size<32>{});
}

}  // namespace ferry::kernels

template <>
struct ferry::detail::registers<void> {
  template <class Body>
  static void in_largest(const Body& body) {
    if (ferry::host::register_bytes() == 32)
      ferry::kernels::run_on_avx2(body);
    else
      ferry::kernels::run_on_any(body);
  }
  template <int Bytes, class Body>
  static void in(const Body& body) {
    if constexpr (Bytes == 32)
      ferry::kernels::run_on_avx2(body);
    else
      ferry::kernels::run_on_any(body);
  }
};
#endif
