// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../error.hpp"
#include "../tuning.hpp"
#include "page_locking.hpp"

#include <ferry/memory/detail/backend.hpp>

#include <cuda_runtime.h>

/// The abilities of a device, less those that FERRY_WITHOUT names.
namespace ferry::cuda {

/// The abilities that FERRY_WITHOUT names.
struct withheld_abilities {
  bool managed = detail::without("managed"), pageable = detail::without("pageable");
  bool registered = detail::without("registered");
  bool large_device = detail::without("large_device");
};
inline const withheld_abilities& withheld() {
  static const withheld_abilities abilities;
  return abilities;
}

/// True if host and device reach managed memory at the same time.
inline bool shares_managed(int device) {
  return !withheld().managed && attribute(cudaDevAttrConcurrentManagedAccess, device) != 0;
}

/// True if kernels reach ordinary host memory (HMM or ATS).
inline bool reaches_ordinary(int device) {
  return !withheld().pageable && attribute(cudaDevAttrPageableMemoryAccess, device) != 0;
}

inline host_memory_facts facts_of(int device) {
  return {attribute(cudaDevAttrCanMapHostMemory, device) != 0,
          attribute(cudaDevAttrUnifiedAddressing, device) != 0,
          !withheld().registered && attribute(cudaDevAttrHostRegisterSupported, device) != 0,
          attribute(cudaDevAttrCanUseHostPointerForRegisteredMem, device) != 0};
}

/// The multiprocessors that one launch of a sort may use.
inline int multiprocessors_of(int device) {
  return withheld().large_device ? small_device.multiprocessors
                                 : attribute(cudaDevAttrMultiProcessorCount, device);
}

inline device_size size_of(const cudaDeviceProp& device) {
  if (withheld().large_device) return small_device;
  return {device.multiProcessorCount, device.l2CacheSize};
}

}  // namespace ferry::cuda
