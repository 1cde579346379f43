// SPDX-License-Identifier: Apache-2.0
// The compiled half of the backends that Kokkos has, for src/ferry.cpp.
#include <Kokkos_Macros.hpp>

#include "host/allocation.cpp"
#include "host/error.cpp"
#include "host/numa.cpp"
#include "host/sort.cpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include "cuda/sort.cpp"
#endif
