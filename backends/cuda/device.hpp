// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <Kokkos_Core.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <new>
#include <string>

namespace ferry::cuda {

/// The device of memory, and of work without an instance: that of Kokkos' default instance. Before
/// Kokkos::initialize and after Kokkos::finalize, the current device of the calling thread; -1 where there is
/// none.
inline int default_device() {
  if (Kokkos::is_initialized()) {
    static const int chosen = Kokkos::Cuda().cuda_device();  // Kokkos is initialised once per process
    return chosen;
  }
  int device = -1;
  if (cudaGetDevice(&device) == cudaSuccess) return device;
  cudaGetLastError();
  return -1;
}

// <sys/sysmacros.h> has a macro of this name.
#pragma push_macro("major")
#undef major
/// The major number of a device's compute capability.
inline int generation_of(const cudaDeviceProp& device) { return device.major; }
#pragma pop_macro("major")

/// Makes a device the current one of the calling thread for its lifetime, then restores the previous one,
/// also where Kokkos has set another one. Costs one query where the device is current already.
///
/// It exchanges contexts of the driver, which the runtime follows. cudaSetDevice would create a context of
/// some hundred megabytes on the restored device, which the process may never use.
class device_guard {
 public:
  /// Throws device_error where the device can't be made current.
  explicit device_guard(int device) {
    if (!enter(device))
      throw device_error("ferry: device " + std::to_string(device) +
                         " can't be made the thread's current one (cuCtxSetCurrent)");
  }
  explicit device_guard(const Kokkos::Cuda& exec) : device_guard(exec.cuda_device()) {}
  /// Never throws. For calls that work from any device, to avoid a context on the device of the thread.
  device_guard(int device, std::nothrow_t) noexcept { enter(device); }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;
  ~device_guard() {
    if (entered_ < 0) return;
    cuCtxSetCurrent(before_);
    cuDevicePrimaryCtxRelease(entered_);
  }

 private:
  bool enter(int device) noexcept {
    int current = -1;
    if (device < 0) return true;  // no device: the next call reports why
    if (cudaGetDevice(&current) != cudaSuccess) {
      cudaGetLastError();
      return true;
    }
    if (current == device) return true;
    CUcontext home = nullptr;
    if (cuCtxGetCurrent(&before_) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&home, device) != CUDA_SUCCESS)
      return false;
    if (cuCtxSetCurrent(home) != CUDA_SUCCESS) {
      cuDevicePrimaryCtxRelease(device);
      return false;
    }
    entered_ = device;
    return true;
  }

  CUcontext before_ = nullptr;  ///< null where the thread had none
  int entered_ = -1;            ///< the device to restore from
};

struct device_functions {
  using device_guard = cuda::device_guard;

  static int device_of(const Kokkos::Cuda& exec) { return exec.cuda_device(); }
};

}  // namespace ferry::cuda
