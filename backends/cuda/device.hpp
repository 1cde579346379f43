// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <Kokkos_Core.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>

namespace ferry::cuda {

/// The device of memory, and of work without an instance: that of Kokkos' default instance. Before
/// Kokkos::initialize and after Kokkos::finalize, the current device of the calling thread; -1 if there is
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

/// The primary context of a device, in which the runtime and Kokkos work; null if the driver refuses it. The
/// process keeps it until it ends, so that a context that a thread is left with stays valid.
inline CUcontext primary_context(int device) noexcept {
  static std::array<std::atomic<CUcontext>, 64> contexts{};
  const auto slot = static_cast<std::size_t>(device);
  CUcontext context = slot < contexts.size() ? contexts[slot].load(std::memory_order_acquire) : nullptr;
  if (context != nullptr) return context;
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return nullptr;
  CUcontext expected = nullptr;
  if (slot < contexts.size() && !contexts[slot].compare_exchange_strong(expected, context))
    cuDevicePrimaryCtxRelease(device);  // another thread has retained it meanwhile
  return context;
}

/// Makes a device's primary context the current one of the calling thread for its lifetime, then restores the
/// context that was current, also if Kokkos has set another one. A thread that had none keeps the device's:
/// Kokkos' launches tell the runtime their device, and without a context the runtime would name that device
/// and yet allocate on the first one. For that reason the driver is asked and not the runtime. The driver
/// also tells a context of another library on the same device apart, where Kokkos' streams are not valid.
///
/// cudaSetDevice would create a context of some hundred megabytes on the restored device, which the process
/// may never use.
class device_guard {
 public:
  /// Throws device_error if the device can't be made current.
  explicit device_guard(int device) {
    if (!enter(device))
      throw device_error(detail::joined("ferry: device ", device,
                                        " can't be made the thread's current one (cuCtxSetCurrent)"));
  }
  explicit device_guard(const Kokkos::Cuda& exec) : device_guard(exec.cuda_device()) {}
  /// Never throws. For calls that work from any device, to avoid a context on the device of the thread.
  device_guard(int device, std::nothrow_t) noexcept { enter(device); }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;
  ~device_guard() {
    if (previous_ != nullptr) cuCtxSetCurrent(previous_);
  }

 private:
  bool enter(int device) noexcept {
    if (device < 0) return true;  // no device: the next call reports why
    CUcontext current = nullptr;
    CUresult status = cuCtxGetCurrent(&current);
    if (status == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_SUCCESS) status = cuCtxGetCurrent(&current);
    if (status != CUDA_SUCCESS) return true;  // no driver: the next call reports why
    const CUcontext primary = primary_context(device);
    if (primary == nullptr) return false;
    if (current == primary) return true;
    if (cuCtxSetCurrent(primary) != CUDA_SUCCESS) return false;
    previous_ = current;
    return true;
  }

  CUcontext previous_ = nullptr;  ///< the context to restore; null if the device's stays
};

struct device_functions {
  using device_guard = cuda::device_guard;

  static int device_of(const Kokkos::Cuda& exec) { return exec.cuda_device(); }
};

}  // namespace ferry::cuda
