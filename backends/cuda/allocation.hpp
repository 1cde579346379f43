#pragma once

#include "error.hpp"
#include "numa.hpp"

#include "../host/allocation.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/backend.hpp>
#include <ferry/memory/spaces.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <type_traits>

namespace ferry::cuda {

/// How a block was made: memory_block::provenance.
enum provenance : int { from_device_heap, registered_pages, managed_pages, plain_pages };

[[noreturn]] inline void throw_bad_alloc(const char* space, const std::string& label, std::size_t bytes,
                                         cudaError_t status, const char* call) {
  cudaGetLastError();
  host::throw_bad_alloc(space, label, bytes, std::string(call) + ": " + cudaGetErrorString(status));
}

/// Makes the pages present, tables beside the device; returns memory_block::placement.
inline int place_pages(const char* space, void* pages, std::size_t bytes, const std::string& label) {
  const int placement = bytes >= host::huge_page_bytes ? numa::advise(pages, host::mapped_bytes(bytes)) : 0;
  detail::progress_meter meter(space, label, bytes);
  host::touch_pages(pages, bytes, meter);
  return placement;
}

/// Pages that are present before they are registered: several times faster than cudaHostAlloc, and of exactly
/// the asked size.
inline memory_block registered(const char* space, std::size_t bytes, const std::string& label) {
  void* pages = host::map_pages(space, label, bytes);
  try {
    const int placement = place_pages(space, pages, bytes, label);
    if (const cudaError_t status = cudaHostRegister(pages, host::mapped_bytes(bytes),
                                                    cudaHostRegisterPortable | cudaHostRegisterMapped);
        status != cudaSuccess)
      throw_bad_alloc(space, label, bytes, status, "cudaHostRegister");
    return {pages, bytes, registered_pages, placement};
  } catch (...) {
    host::unmap_pages(pages, bytes);
    throw;
  }
}

/// Managed memory that stays on the host: the driver maps it into the device with large pages, which keeps
/// random rows at the link's speed for tables of any size. Both pieces of advice are needed, and before the
/// first touch: without accessed-by the pages migrate.
inline cudaError_t advise_host_resident(void* data, std::size_t bytes) {
  int device = 0;
  if (const cudaError_t status = cudaGetDevice(&device); status != cudaSuccess) return status;
#if CUDART_VERSION >= 13000
  const cudaMemLocation home{cudaMemLocationTypeHost, 0};
  const cudaMemLocation reader{cudaMemLocationTypeDevice, device};
#else
  const int home = cudaCpuDeviceId;
  const int reader = device;
#endif
  if (const cudaError_t status = cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, home);
      status != cudaSuccess)
    return status;
  return cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, reader);
}

struct allocation_functions {
  static memory_block allocate(device_space space, std::size_t bytes, const std::string& label) {
    void* data = nullptr;
    if (const cudaError_t status = cudaMalloc(&data, bytes); status != cudaSuccess)
      throw_bad_alloc(space.name.data(), label, bytes, status, "cudaMalloc");
    return {data, bytes, from_device_heap, 0};
  }

  static memory_block allocate(pinned_space space, std::size_t bytes, const std::string& label) {
    return registered(space.name.data(), bytes, label);
  }

  static memory_block allocate(mapped_space space, std::size_t bytes, const std::string& label) {
    if (attribute(cudaDevAttrConcurrentManagedAccess) == 0)
      return registered(space.name.data(), bytes, label);
    void* data = nullptr;
    if (const cudaError_t status = cudaMallocManaged(&data, bytes); status != cudaSuccess)
      throw_bad_alloc(space.name.data(), label, bytes, status, "cudaMallocManaged");
    try {
      if (const cudaError_t status = advise_host_resident(data, bytes); status != cudaSuccess)
        throw_bad_alloc(space.name.data(), label, bytes, status, "cudaMemAdvise");
      return {data, bytes, managed_pages, place_pages(space.name.data(), data, bytes, label)};
    } catch (...) {
      cudaFree(data);
      throw;
    }
  }

  static memory_block allocate(pageable_space space, std::size_t bytes, const std::string& label) {
    return {host::map_pages(space.name.data(), label, bytes), bytes, plain_pages, 0};
  }

  template <class Space>
  static void deallocate(Space, const memory_block& block) noexcept {
    switch (block.provenance) {
      case from_device_heap:
      case managed_pages:
        cudaFree(block.data);
        break;
      case registered_pages:
        cudaHostUnregister(block.data);
        [[fallthrough]];
      default:
        host::unmap_pages(block.data, block.bytes);
        break;
    }
  }

  /// Memory of the user's, page-locked in place.
  static void lock_pages(void* data, std::size_t bytes) {
    const cudaError_t status =
        cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (status == cudaSuccess) return;
    if (status != cudaErrorHostMemoryAlreadyRegistered)
      throw_bad_alloc("pinned_space", "ferry::adopted", bytes, status, "cudaHostRegister");
    cudaGetLastError();
    throw invalid_argument(
        "ferry::adopt: pages of the " + std::to_string(bytes) +
        " bytes of 'ferry::adopted' are page-locked already: by code other than ferry "
        "(cudaHostRegister, cudaHostAlloc), or for adopted memory that begins or ends in the same page");
  }
  static void unlock_pages(void* data) noexcept { cudaHostUnregister(data); }

  template <class Space>
  static std::string describe(Space, const memory_block& block) {
    const std::string place = host::numa::describe(block.placement);
    switch (block.provenance) {
      case from_device_heap:
        return "device memory (cudaMalloc)";
      case managed_pages:
        return "managed memory, preferred location host, accessed by the device through large pages" + place;
      case registered_pages:
        return (std::is_same_v<Space, mapped_space>
                    ? "page-locked memory (fallback: this device has no concurrent access to managed memory; "
                      "expect a lower rate of random rows on large tables)"
                    : "page-locked memory (mmap, huge pages, cudaHostRegister)") +
               place;
      default:
        return "pageable host memory";
    }
  }
};

}  // namespace ferry::cuda
