// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "detail/abilities.hpp"
#include "detail/device_use.hpp"
#include "detail/page_locking.hpp"
#include "device.hpp"
#include "error.hpp"
#include "numa.hpp"

#include "../host/allocation.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/spaces.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <type_traits>

namespace ferry::cuda {

/// The values of memory_block::provenance: how a block was made.
enum provenance : int { from_device_heap, registered_pages, managed_pages, plain_pages, allocated_pages };

[[noreturn]] inline void throw_bad_alloc(const char* space, const std::string& label, std::size_t bytes,
                                         cudaError_t status, const char* call) {
  cudaGetLastError();
  host::throw_bad_alloc(space, label, bytes, detail::joined(call, ": ", cudaGetErrorString(status)));
}

/// Makes the pages present, near the device; returns memory_block::placement.
inline int place_pages(const char* space, void* pages, std::size_t bytes, const std::string& label,
                       int device) {
  const int placement =
      bytes >= host::huge_page_bytes ? numa::advise(pages, host::mapped_bytes(bytes), device) : 0;
  detail::progress_meter meter(space, label, bytes);
  host::touch_pages(pages, bytes, meter);
  return placement;
}

inline void unregister_pages(void* data, std::size_t bytes) noexcept {
  unlock_pieces(data, bytes, [](void* piece) { cudaHostUnregister(piece); });
}
inline cudaError_t register_pages(void* data, std::size_t bytes) {
  return lock_pieces(
      data, bytes,
      [](void* piece, std::size_t size) {
        return cudaHostRegister(piece, size, cudaHostRegisterPortable | cudaHostRegisterMapped);
      },
      [](void* piece) { cudaHostUnregister(piece); });
}

/// Pages that are made present, then registered: several times faster than cudaHostAlloc, and of exactly the
/// requested size.
inline memory_block registered(const char* space, std::size_t bytes, const std::string& label, int device) {
  void* pages = host::map_pages(space, label, bytes);
  try {
    const int placement = place_pages(space, pages, bytes, label, device);
    if (const cudaError_t status = register_pages(pages, host::mapped_bytes(bytes)); status != cudaSuccess)
      throw_bad_alloc(space, label, bytes, status, "cudaHostRegister");
    return {pages, bytes, registered_pages, placement};
  } catch (...) {
    host::unmap_pages(pages, bytes);
    throw;
  }
}

/// Pages of cudaHostAlloc, at an address that host and devices share.
inline memory_block allocated(const char* space, std::size_t bytes, const std::string& label) {
  void* data = nullptr;
  if (const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
      status != cudaSuccess)
    throw_bad_alloc(space, label, bytes, status, "cudaHostAlloc");
  void* mapped = nullptr;
  const cudaError_t status = cudaHostGetDevicePointer(&mapped, data, 0);
  if (status == cudaSuccess && mapped == data) return {data, bytes, allocated_pages, 0};
  cudaGetLastError();
  cudaFreeHost(data);
  throw device_error(
      detail::joined("ferry: ", space, " for '", label,
                     "': the device has memory of cudaHostAlloc at another address than the host"));
}

/// Page-locked memory, allocated in the way that the device supports.
inline memory_block page_locked(const char* space, std::size_t bytes, const std::string& label, int device) {
  const host_memory_facts facts = facts_of(device);
  switch (page_locking_for(facts)) {
    case page_locking::registered:
      return registered(space, bytes, label, device);
    case page_locking::allocated:
      return allocated(space, bytes, label);
    default:
      throw device_error(
          detail::joined("ferry: ", space, " for '", label,
                         "': this device has no memory that it and the host reach at one address: ",
                         why_not_registered(facts)));
  }
}

/// Advises that managed memory stays on the host. The driver then maps it into the device with large pages,
/// so random rows run at the speed of the link for tables of any size. Both pieces of advice are needed
/// before the first touch. Without accessed-by the pages migrate.
inline cudaError_t advise_host_resident(void* data, std::size_t bytes, int device) {
#if CUDART_VERSION >= 13000
  const cudaMemLocation home{cudaMemLocationTypeHost, 0};
#else
  const int home = cudaCpuDeviceId;
#endif
  if (const cudaError_t status = cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, home);
      status != cudaSuccess)
    return status;
  return advise_reader(data, bytes, device);
}

/// Kernels read rows in aligned units of 16 bytes, and a row may end within one. Atomic additions to
/// numbers of one or two bytes exchange the word of four bytes that holds them. So the last unit of an
/// allocation must be whole.
inline std::size_t in_whole_units(std::size_t bytes) {
  return bytes > static_cast<std::size_t>(-16) ? bytes : (bytes + 15) / 16 * 16;
}

/// `device` of the functions that allocate: device memory lies there, and host memory is placed near it; -1
/// means the default device. All devices reach page-locked and managed memory.
struct allocation_functions {
  static memory_block allocate(device_space space, std::size_t bytes, const std::string& label, int device) {
    device = enter(device);
    const device_guard guard(device);
    const capture_pause pause(true);
    void* data = nullptr;
    if (const cudaError_t status = cudaMalloc(&data, in_whole_units(bytes)); status != cudaSuccess)
      throw_bad_alloc(space.name.data(), label, bytes, status, "cudaMalloc");
    return {data, bytes, from_device_heap, 0, device};
  }

  static memory_block allocate(pinned_space space, std::size_t bytes, const std::string& label, int device) {
    device = enter(device);
    const device_guard guard(device);
    const capture_pause pause(true);
    return page_locked(space.name.data(), bytes, label, device);
  }

  static memory_block allocate(mapped_space space, std::size_t bytes, const std::string& label, int device) {
    device = enter(device);
    const device_guard guard(device);
    const capture_pause pause(true);
    if (!shares_managed(device)) return page_locked(space.name.data(), bytes, label, device);
    void* data = nullptr;
    if (const cudaError_t status = cudaMallocManaged(&data, in_whole_units(bytes)); status != cudaSuccess)
      throw_bad_alloc(space.name.data(), label, bytes, status, "cudaMallocManaged");
    try {
      if (const cudaError_t status = advise_host_resident(data, bytes, device); status != cudaSuccess)
        throw_bad_alloc(space.name.data(), label, bytes, status, "cudaMemAdvise");
      device_use::get().add_managed(data, bytes);
      return {data, bytes, managed_pages, place_pages(space.name.data(), data, bytes, label, device)};
    } catch (...) {
      device_use::get().remove_managed(data);
      cudaFree(data);
      throw;
    }
  }

  static memory_block allocate(pageable_space space, std::size_t bytes, const std::string& label, int) {
    return {host::map_pages(space.name.data(), label, bytes), bytes, plain_pages, 0};
  }

  /// The bytes of ended tensors that may lie idle for others: a sixteenth of the memory, of host memory at
  /// most 2 GiB.
  static std::size_t idle_limit(device_space, int device) {
    std::size_t bytes = 0;
    return cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS ? bytes / 16 : 0;
  }
  static std::size_t idle_limit(pinned_space, int) {
    return std::min(host::memory_bytes() / 16, std::size_t{2} << 30);
  }
  static std::size_t idle_limit(mapped_space, int) { return idle_limit(pinned_space{}, -1); }

  template <class Space>
  static void deallocate(Space, const memory_block& block) noexcept {
    const device_guard guard(block.device >= 0 ? block.device : default_device(), std::nothrow);
    const capture_pause pause(true);
    switch (block.provenance) {
      case managed_pages:
        device_use::get().remove_managed(block.data);
        [[fallthrough]];
      case from_device_heap:
        cudaFree(block.data);
        break;
      case allocated_pages:
        cudaFreeHost(block.data);
        break;
      case registered_pages:
        unregister_pages(block.data, host::mapped_bytes(block.bytes));
        [[fallthrough]];
      default:
        host::unmap_pages(block.data, block.bytes);
        break;
    }
  }

  /// Page-locks memory of the user in place.
  static void lock_pages(void* data, std::size_t bytes) {
    const int device = default_device();
    const device_guard guard(device);
    const capture_pause pause(true);
    if (const char* reason = why_not_registered(facts_of(device)))
      throw device_error(detail::joined(
          "ferry::adopt: the ", bytes, " bytes of 'ferry::adopted' can't be page-locked in place: ", reason,
          "; copy them into a ferry::tensor in pinned_space, or adopt them as pageable_space"));
    const cudaError_t status = register_pages(data, bytes);
    if (status == cudaSuccess) return;
    if (status != cudaErrorHostMemoryAlreadyRegistered)
      throw_bad_alloc("pinned_space", "ferry::adopted", bytes, status, "cudaHostRegister");
    cudaGetLastError();
    throw invalid_argument(detail::joined(
        "ferry::adopt: pages of the ", bytes,
        " bytes of 'ferry::adopted' are page-locked already: by another adoption, which may begin or end in the same page, by a tensor of ferry, or by other code (cudaHostRegister, cudaHostAlloc)"));
  }
  static void unlock_pages(void* data, std::size_t bytes) noexcept {
    const device_guard guard(default_device(), std::nothrow);
    const capture_pause pause(true);
    unregister_pages(data, bytes);
  }

  template <class Space>
  static std::string describe(Space, const memory_block& block) {
    const std::string place = host::numa::describe(block.placement);
    switch (block.provenance) {
      case from_device_heap:
        return "device memory (cudaMalloc)";
      case managed_pages:
        return detail::joined(
            "managed memory, preferred location host, accessed by the device through large pages", place);
      case registered_pages:
        return detail::joined(
            std::is_same_v<Space, mapped_space>
                ? "page-locked memory (fallback: this device has no concurrent access to managed memory; expect a lower rate of random rows on large tables)"
                : "page-locked memory (mmap, huge pages, cudaHostRegister)",
            place);
      case allocated_pages:
        return detail::joined(
            "page-locked memory (cudaHostAlloc: this device takes no registered memory",
            std::is_same_v<Space, mapped_space>
                ? ", and has no concurrent access to managed memory; expect a lower rate of random rows on large tables)"
                : ")");
      default:
        return "pageable host memory";
    }
  }

 private:
  /// The device to allocate for. Marks it as in use if it is not the default.
  static int enter(int device) {
    const int standard = default_device();
    if (device < 0 || device == standard) return standard;
    device_use::get().enter(device);
    return device;
  }
};

}  // namespace ferry::cuda
