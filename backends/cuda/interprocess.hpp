// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "device.hpp"
#include "error.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/backend.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>

namespace ferry::cuda {

/// Memory of cudaMalloc that other processes open.
struct interprocess_functions {
  static constexpr bool shares_memory = true;

  /// The token opens the whole allocation of cudaMalloc, so the offset of `data` comes with it.
  static exported_memory export_memory(void* data, int device) {
    static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(exported_memory::token));
    const device_guard guard(device);
    const capture_pause pause(true);
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    const auto address = reinterpret_cast<CUdeviceptr>(data);
    if (cuMemGetAddressRange(&base, &bytes, address) != CUDA_SUCCESS)
      throw device_error(
          detail::joined("ferry: cuMemGetAddressRange does not know memory of device ", device));
    cudaIpcMemHandle_t handle;
    check(cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(base)), "cudaIpcGetMemHandle");
    exported_memory exported;
    std::memcpy(exported.token.data(), &handle, sizeof handle);
    exported.offset = static_cast<std::size_t>(address - base);
    return exported;
  }

  /// Memory of device `uuid`, for work of `device`. Throws device_error if that does not reach it. No
  /// context is made on the device of the memory, which may be one that this process does not see.
  static void* import_memory(const std::array<unsigned char, 64>& token, const device_uuid& uuid,
                             int device) {
    const device_guard guard(device);
    const capture_pause pause(true);
    int count = 0, reaches = 0;
    check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    for (int peer = 0; peer < count; ++peer) {
      if (peer == device || uuid_of(peer) != uuid) continue;
      check(cudaDeviceCanAccessPeer(&reaches, device, peer), "cudaDeviceCanAccessPeer");
      if (reaches == 0)
        throw device_error(detail::joined("device ", device, " does not reach the memory of device ", peer));
    }
    cudaIpcMemHandle_t handle;
    std::memcpy(&handle, token.data(), sizeof handle);
    void* data = nullptr;
    check(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
    return data;
  }
  static void end_import(void* data, int device) noexcept {
    const device_guard guard(device, std::nothrow);
    const capture_pause pause(true);
    if (cudaIpcCloseMemHandle(data) != cudaSuccess) cudaGetLastError();
  }

  static device_uuid uuid_of(int device) {
    CUdevice handle = 0;
    CUuuid native;
    if (cuDeviceGet(&handle, device) != CUDA_SUCCESS || cuDeviceGetUuid(&native, handle) != CUDA_SUCCESS)
      throw device_error(detail::joined("ferry: the driver tells no identity of device ", device));
    device_uuid uuid;
    std::memcpy(uuid.data(), native.bytes, sizeof native.bytes);
    return uuid;
  }
};

}  // namespace ferry::cuda
