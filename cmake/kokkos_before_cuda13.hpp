// SPDX-License-Identifier: Apache-2.0
// Kokkos before 4.7.1 calls cudaMemPrefetchAsync and cudaGraphAddDependencies with the parameters that they
// had up to CUDA 12. These overloads accept such calls; ferry's own build includes this file first in every
// CUDA source when it meets such a Kokkos. A program that uses ferry with it does the same: -include
// kokkos_before_cuda13.hpp.
#pragma once

#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000

static inline cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device,
                                               cudaStream_t stream) {
  cudaMemLocation location{};
  if (device == cudaCpuDeviceId) {
    location.type = cudaMemLocationTypeHost;
  } else {
    location.type = cudaMemLocationTypeDevice;
    location.id = device;
  }
  return cudaMemPrefetchAsync(pointer, bytes, location, /*flags*/ 0u, stream);
}

static inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                   const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, /*edge data*/ nullptr, count);
}

#endif
