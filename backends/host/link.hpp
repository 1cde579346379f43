// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

namespace ferry::host {

/// There is no link: all memory is host memory.
struct link_functions {
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch(const void*) {}
};

}  // namespace ferry::host
