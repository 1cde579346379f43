// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include "host/backend.hpp"

// No other file tests which device Kokkos was built for. FERRY_BACKEND_KOKKOS asks for the backend of
// Kokkos alone, which a device without a backend of its own takes by itself.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL) || \
    defined(KOKKOS_ENABLE_OPENMPTARGET) || defined(KOKKOS_ENABLE_OPENACC)
#define FERRY_HAS_DEVICE 1
#endif
#if !defined(FERRY_BACKEND_KOKKOS) && defined(KOKKOS_ENABLE_CUDA)
#define FERRY_DEVICE_IS_CUDA 1
#elif defined(FERRY_BACKEND_KOKKOS) || defined(FERRY_HAS_DEVICE)
#define FERRY_DEVICE_IS_KOKKOS 1
#endif
#if defined(FERRY_DEVICE_IS_CUDA)
#include "cuda/backend.hpp"
#elif defined(FERRY_DEVICE_IS_KOKKOS)
#include "kokkos/backend.hpp"
#endif

/// Defined if src/ferry.cpp holds the verbs of src/instances: on hosts. A device's compiler takes minutes for
/// them: they are in sources that link ferry::instances.
#if !defined(FERRY_HAS_DEVICE) || defined(FERRY_USE_INSTANCES)
#define FERRY_LIBRARY_HAS_VERBS 1
#endif

namespace ferry {

#if defined(FERRY_DEVICE_IS_KOKKOS)
/// Facts of this Kokkos for the backend of Kokkos alone.
struct spaces_of_kokkos {
  static constexpr bool device_is_host = HostExecutionSpace<Kokkos::DefaultExecutionSpace>;
  using device = Kokkos::DefaultExecutionSpace::memory_space;
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
  using pinned = Kokkos::SharedHostPinnedSpace;
#else
  using pinned = Kokkos::HostSpace;
#endif
#if defined(KOKKOS_HAS_SHARED_SPACE)
  using mapped = std::conditional_t<
      Kokkos::SpaceAccessibility<Kokkos::DefaultExecutionSpace, Kokkos::SharedSpace>::accessible,
      Kokkos::SharedSpace, pinned>;
#else
  using mapped = pinned;
#endif
  /// DLPack's codes of device, page-locked and managed memory.
#if defined(KOKKOS_ENABLE_CUDA)
  static constexpr dlpack_codes dlpack{2, 3, 13};
#elif defined(KOKKOS_ENABLE_HIP)
  static constexpr dlpack_codes dlpack{10, 11, 10};
#elif defined(KOKKOS_ENABLE_SYCL)
  static constexpr dlpack_codes dlpack{14, 14, 14};
#else
  static constexpr dlpack_codes dlpack{1, 1, 1};
#endif
};
#endif

#if defined(FERRY_DEVICE_IS_CUDA)
using enabled_backend = cuda_backend;
#elif defined(FERRY_DEVICE_IS_KOKKOS)
using enabled_backend = kokkos_backend<spaces_of_kokkos>;
#else
using enabled_backend = host_backend;
#endif

template <class Dependent>
struct device_backend : enabled_backend {
  /// The library holds the verbs of src/instances. Builds of samples leave them out: their tests call few.
#if defined(FERRY_LIBRARY_HAS_VERBS) && !defined(FERRY_WITHOUT_INSTANCES)
  static constexpr bool library_has_verbs = true;
#else
  static constexpr bool library_has_verbs = false;
#endif
};

#if defined(FERRY_HAS_DEVICE)
template <>
struct execution_backend<Kokkos::DefaultExecutionSpace> : enabled_backend {};
template <HostExecutionSpace Exec>
struct execution_backend<Exec> : host_backend {};
#else
template <HostExecutionSpace Exec>
struct execution_backend<Exec> : enabled_backend {};
#endif

}  // namespace ferry

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
#define FERRY_FOR_HOST_EXECUTION_SPACES(X) \
  FERRY_FOR_SERIAL(X)                      \
  FERRY_FOR_OPENMP(X)                      \
  FERRY_FOR_THREADS(X)
#if defined(FERRY_HAS_DEVICE)
#define FERRY_FOR_DEVICE_EXECUTION_SPACES(X) X(Kokkos::DefaultExecutionSpace)
#else
#define FERRY_FOR_DEVICE_EXECUTION_SPACES(X)
#endif
#define FERRY_FOR_EXECUTION_SPACES(X) \
  FERRY_FOR_HOST_EXECUTION_SPACES(X)  \
  FERRY_FOR_DEVICE_EXECUTION_SPACES(X)

/// X(space) for those whose kernels reach device_space.
#if defined(FERRY_HAS_DEVICE)
#define FERRY_FOR_SPACES_OF_DEVICE(X) FERRY_FOR_DEVICE_EXECUTION_SPACES(X)
#else
#define FERRY_FOR_SPACES_OF_DEVICE(X) FERRY_FOR_HOST_EXECUTION_SPACES(X)
#endif
