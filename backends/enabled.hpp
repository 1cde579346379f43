// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include "host/backend.hpp"

// The only place that tests which device Kokkos was built for.
#if defined(KOKKOS_ENABLE_CUDA)
#include "cuda/backend.hpp"
#endif

namespace ferry {

#if defined(KOKKOS_ENABLE_CUDA)
template <class Dependent>
struct device_backend : cuda_backend {};
#else
template <class Dependent>
struct device_backend : host_backend {};
#endif

}  // namespace ferry

/// Defined if src/ferry.cpp holds the verbs of src/instances.
#if !defined(KOKKOS_ENABLE_CUDA) || defined(FERRY_USE_INSTANCES)
#define FERRY_LIBRARY_HAS_VERBS 1
#endif

/// X(space) for each execution space that Kokkos has: what the library holds for each of them.
#if defined(KOKKOS_ENABLE_SERIAL)
#define FERRY_FOR_SERIAL(X) X(Kokkos::Serial)
#else
#define FERRY_FOR_SERIAL(X)
#endif
#if defined(KOKKOS_ENABLE_OPENMP)
#define FERRY_FOR_OPENMP(X) X(Kokkos::OpenMP)
#else
#define FERRY_FOR_OPENMP(X)
#endif
#if defined(KOKKOS_ENABLE_THREADS)
#define FERRY_FOR_THREADS(X) X(Kokkos::Threads)
#else
#define FERRY_FOR_THREADS(X)
#endif
#if defined(KOKKOS_ENABLE_CUDA)
#define FERRY_FOR_CUDA(X) X(Kokkos::Cuda)
#else
#define FERRY_FOR_CUDA(X)
#endif
#define FERRY_FOR_HOST_EXECUTION_SPACES(X) \
  FERRY_FOR_SERIAL(X)                      \
  FERRY_FOR_OPENMP(X)                      \
  FERRY_FOR_THREADS(X)
#define FERRY_FOR_DEVICE_EXECUTION_SPACES(X) FERRY_FOR_CUDA(X)
#define FERRY_FOR_EXECUTION_SPACES(X) \
  FERRY_FOR_HOST_EXECUTION_SPACES(X)  \
  FERRY_FOR_DEVICE_EXECUTION_SPACES(X)

/// X(space) for those whose kernels reach device_space.
#if defined(KOKKOS_ENABLE_CUDA)
#define FERRY_FOR_SPACES_OF_DEVICE(X) FERRY_FOR_DEVICE_EXECUTION_SPACES(X)
#else
#define FERRY_FOR_SPACES_OF_DEVICE(X) FERRY_FOR_HOST_EXECUTION_SPACES(X)
#endif
