// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "device.hpp"
#include "error.hpp"

#include <ferry/memory/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

namespace ferry::cuda {

/// Facts about memory for other libraries.
struct interop_functions {
  /// The runtime's place of an address. Page-locked memory that the device has at another address than
  /// the host counts as ordinary memory, because kernels don't reach it by this address; so does null.
  static memory_place place_of(const void* data) {
    if (data == nullptr) return {memory_kind::host, default_device()};
    const device_guard guard(default_device());
    const capture_pause pause(true);
    cudaPointerAttributes known{};
    check(cudaPointerGetAttributes(&known, data), "cudaPointerGetAttributes");
    switch (known.type) {
      case cudaMemoryTypeDevice:
        return {memory_kind::device, known.device};
      case cudaMemoryTypeManaged:
        return {memory_kind::managed, default_device()};
      case cudaMemoryTypeHost:
        return {known.devicePointer == data ? memory_kind::page_locked : memory_kind::host, default_device()};
      default:
        return {memory_kind::host, default_device()};
    }
  }
  /// The codes of DLPack for this backend's memory: kDLCUDA, kDLCUDAHost, kDLCUDAManaged.
  static constexpr dlpack_codes dlpack_devices() { return {2, 3, 13}; }
  /// The stream of an instance.
  static cudaStream_t native_queue(const Kokkos::Cuda& exec) { return exec.cuda_stream(); }
};

}  // namespace ferry::cuda
