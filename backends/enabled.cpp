// SPDX-License-Identifier: Apache-2.0
// The compiled half of the backends that Kokkos has, for src/ferry.cpp.
#include "enabled.hpp"

#include "host/allocation.cpp"
#include "host/error.cpp"
#include "host/numa.cpp"
#include "host/sort.cpp"

#if defined(FERRY_DEVICE_IS_CUDA)
#include "cuda/sort.cpp"
#elif defined(FERRY_DEVICE_IS_KOKKOS)
#include "kokkos/event.cpp"
#include "kokkos/sort.cpp"
#include "kokkos/transfer.cpp"
#endif
