// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::cuda {

/// A device's attributes for memory that it shares with the host, with the names of CUDA's attributes.
struct host_memory_facts {
  bool can_map_host_memory = false;
  bool unified_addressing = false;
  bool host_register_supported = false;
  bool can_use_host_pointer_for_registered_mem = false;
};

/// How to get host memory that the host and all devices reach at one address.
enum class page_locking {
  registered,  ///< own pages, then cudaHostRegister: several times faster, and of exactly the requested size
  allocated,   ///< cudaHostAlloc
  impossible,
};

constexpr page_locking page_locking_for(const host_memory_facts& device) {
  if (!device.can_map_host_memory) return page_locking::impossible;
  if (device.host_register_supported && device.can_use_host_pointer_for_registered_mem)
    return page_locking::registered;
  return device.unified_addressing ? page_locking::allocated : page_locking::impossible;
}

/// Why existing memory can't be locked for a device, as the end of a sentence; null if it can.
constexpr const char* why_not_registered(const host_memory_facts& device) {
  if (!device.can_map_host_memory)
    return "the device can't map host memory (cudaDevAttrCanMapHostMemory is 0)";
  if (!device.host_register_supported)
    return "the device takes no memory that exists already (cudaDevAttrHostRegisterSupported is 0)";
  if (!device.can_use_host_pointer_for_registered_mem)
    return "the device would have it at another address than the host (cudaDevAttrCanUseHostPointerForRegisteredMem is 0)";
  return nullptr;
}

}  // namespace ferry::cuda
