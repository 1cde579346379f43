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
