// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../capture.hpp"
#include "../device.hpp"
#include "../error.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace ferry::cuda {

/// Advises that a device maps managed memory, so that its pages do not move there.
inline cudaError_t advise_reader(void* data, std::size_t bytes, int device) {
#if CUDART_VERSION >= 13000
  const cudaMemLocation reader{cudaMemLocationTypeDevice, device};
#else
  const int reader = device;
#endif
  return cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, reader);
}

/// The devices that ferry works on, the managed memory that all of them map, and which of them reach each
/// other's memory. Thread-safe. Never destroyed, because memory may be freed after Kokkos::finalize.
class device_use {
 public:
  static device_use& get() {
    static device_use& use = detail::process_wide<device_use>();
    return use;
  }

  [[nodiscard]] bool has_several_devices() {
    const std::lock_guard lock(guard_);
    return devices_.size() > 1;
  }

  /// Begins to use a device. From here on it maps all managed memory. If the advice fails, kernels of the
  /// device reach the memory all the same, but fault for its pages.
  void enter(int device) {
    if (device < 0) return;
    const std::lock_guard lock(guard_);
    for (const int known : devices_)
      if (known == device) return;
    devices_.reserve(devices_.size() + 1);
    if (primary_context(device) == nullptr)
      throw device_error(
          detail::joined("ferry: device ", device, " can't be used (cuDevicePrimaryCtxRetain)"));
    devices_.push_back(device);
    for (const auto& memory : managed_) advise(memory.first, memory.second, device);
  }

  /// Managed memory that all devices in use map, now and later.
  void add_managed(void* data, std::size_t bytes) {
    const std::lock_guard lock(guard_);
    managed_.emplace_back(data, bytes);
    for (const int device : devices_) advise(data, bytes, device);
  }
  void remove_managed(const void* data) noexcept {
    const std::lock_guard lock(guard_);
    std::erase_if(managed_, [data](const auto& memory) { return memory.first == data; });
  }

  /// Lets kernels and DMA of each of two devices reach the other's memory, from here on; false if the
  /// machine can't.
  [[nodiscard]] bool connect(int first, int second) {
    if (first == second) return true;
    const std::lock_guard lock(guard_);
    const auto [link, is_new] = links_.try_emplace(std::minmax({first, second}), false);
    if (!is_new) return link->second;
    const capture_pause pause(true);
    return link->second = open(first, second) && open(second, first);
  }

 private:
  static void advise(void* data, std::size_t bytes, int device) noexcept {
    const device_guard guard(device, std::nothrow);
    const capture_pause pause(true);
    if (advise_reader(data, bytes, device) != cudaSuccess) cudaGetLastError();
  }
  static bool open(int device, int peer) noexcept {
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, device, peer) != cudaSuccess || can == 0) {
      cudaGetLastError();
      return false;
    }
    const device_guard guard(device, std::nothrow);
    const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
    if (status != cudaSuccess) cudaGetLastError();
    return status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
  }

  std::mutex guard_;
  std::vector<int> devices_;
  std::vector<std::pair<void*, std::size_t>> managed_;
  std::map<std::pair<int, int>, bool> links_;  ///< whether two devices reach each other's memory
};

}  // namespace ferry::cuda
