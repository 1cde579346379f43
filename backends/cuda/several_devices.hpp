// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "detail/device_use.hpp"
#include "device.hpp"
#include "error.hpp"

#include "../kokkos_locks.hpp"

#include <ferry/error.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ferry::cuda {

/// Work on several devices of one process.
struct several_devices_functions {
  /// The device of memory and work for which none is given.
  static int default_device() { return cuda::default_device(); }
  /// The number of devices; they count from 0.
  static int device_count() {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
  }
  /// Begins to use a device; the engine of a device calls it once.
  static void enter_device(int device) { device_use::get().enter(device); }

  /// The name and memory of a device. The driver tells the free memory only within a context, so if the
  /// process has none on the device, one is made for the query. By functions of the driver, as those of the
  /// runtime would keep it.
  static device_summary summary_of(int device) {
    device_summary summary;
    char name[256] = "";
    CUdevice handle = 0;
    if (cuDeviceGet(&handle, device) != CUDA_SUCCESS ||
        cuDeviceGetName(name, static_cast<int>(sizeof name), handle) != CUDA_SUCCESS ||
        cuDeviceTotalMem(&summary.memory_total, handle) != CUDA_SUCCESS)
      throw device_error(detail::joined("ferry::devices: the driver tells nothing of device ", device));
    summary.name = name;
    CUcontext context = nullptr;
    const auto fail = [device](const char* call) {
      throw device_error(
          detail::joined("ferry::devices: the memory of device ", device, " can't be queried (", call, ")"));
    };
    if (cuDevicePrimaryCtxRetain(&context, handle) != CUDA_SUCCESS) fail("cuDevicePrimaryCtxRetain");
    CUresult status = cuCtxPushCurrent(context);
    if (status == CUDA_SUCCESS) {
      status = cuMemGetInfo(&summary.memory_free, &summary.memory_total);
      cuCtxPopCurrent(&context);
    }
    cuDevicePrimaryCtxRelease(handle);
    if (status != CUDA_SUCCESS) fail("cuMemGetInfo");
    return summary;
  }

  /// Held while an instance is made.
  static std::unique_lock<std::mutex> lock_instances() { return detail::lock_instances(); }

  /// A new instance on a device, with a stream of its own that ends with its last copy. Made in another
  /// thread, because Kokkos leaves contexts on the stack of the one that makes an instance.
  template <class Exec>
  static Exec instance_on(int device) {
    const auto making = lock_instances();
    enter_device(device);
    return std::async(std::launch::async, [device] { return make_instance(device); }).get();
  }

  /// Lets work of the instance reach the memory of another device; false if the machine can't.
  static bool reaches_device(const Kokkos::Cuda& exec, int device) {
    return device_use::get().connect(exec.cuda_device(), device);
  }

  /// True if any work of a device reaches the memory of another.
  static bool devices_reach(int device, int peer) { return device_use::get().connect(device, peer); }

  /// Held while a kernel is launched. Kokkos keeps what it knows of a kernel on each device in a list that it
  /// does not lock, and that the first launch on each device changes. So threads launch a kernel one by one.
  template <class Kernel>
  static std::unique_lock<std::mutex> lock_launch() {
    static std::mutex one_at_a_time;
    return detail::lock_shortly(one_at_a_time);
  }

 private:
  static Kokkos::Cuda make_instance(int device) {
    const capture_pause pause(true);
    const device_guard guard(device);
    if (device == cuda::default_device()) return Kokkos::Experimental::partition_space(Kokkos::Cuda(), 1)[0];
    cudaStream_t native = nullptr;
    check(cudaStreamCreate(&native), "cudaStreamCreate");
    const std::unique_ptr<CUstream_st, cudaError_t (*)(cudaStream_t)> stream(native, &cudaStreamDestroy);
    const Kokkos::Cuda base(native);  // an instance is on the device of its stream
    return Kokkos::Experimental::partition_space(base, 1)[0];
  }
};

}  // namespace ferry::cuda
