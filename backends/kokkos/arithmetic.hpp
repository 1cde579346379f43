// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../rounded.hpp"

#include <Kokkos_Macros.hpp>

namespace ferry::kokkos {

struct arithmetic_functions {
  template <class T>
  using number = kernels::rounded<T>;

  /// result = the lesser or the greater of two numbers, NaN if one of them is. Kokkos has no such
  /// instructions.
  /// @{
  KOKKOS_FORCEINLINE_FUNCTION static bool lesser(float, float, float&) { return false; }
  KOKKOS_FORCEINLINE_FUNCTION static bool greater(float, float, float&) { return false; }
  /// @}
};

}  // namespace ferry::kokkos
