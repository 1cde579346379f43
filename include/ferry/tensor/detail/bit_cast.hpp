// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

namespace ferry::detail {

/// std::bit_cast for kernels. For nvcc the standard one is a host function.
template <class To, class From>
KOKKOS_FUNCTION constexpr To bit_cast(const From& source) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, source);
}

}  // namespace ferry::detail
