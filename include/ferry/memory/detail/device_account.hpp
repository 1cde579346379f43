// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/backend.hpp>

#include <string>
#include <string_view>

namespace ferry::detail {

/// True if the backend of a space tells its devices; those of users may not.
template <class Space>
consteval bool tells_devices() {
  return requires {
    device_backend<Space>::default_device();
    device_backend<Space>::device_count();
  };
}

/// True if memory of the space lies on one of several devices.
template <class Space>
consteval bool lies_on_device() {
  return !Space::is_host_accessible && tells_devices<Space>();
}

[[noreturn]] void refuse_device(const std::string& label, int device, int count);

/// The device that memory of the space gets if `device` is asked for, -1 for host memory. Throws
/// invalid_argument for a device that there is none of.
template <MemorySpace Space>
int device_of_memory(const std::string& label, int device) {
  if (device != -1) {
    int count = 1;
    if constexpr (tells_devices<Space>()) count = device_backend<Space>::device_count();
    if (device < 0 || device >= count) refuse_device(label, device, count);
  }
  if constexpr (lies_on_device<Space>())
    return device != -1 ? device : device_backend<Space>::default_device();
  else
    return -1;
}

/// The name of the accounts for memory of a space on a device: that of the space, with the number of a device
/// other than Kokkos'.
template <MemorySpace Space>
std::string account_of(int device) {
  std::string name(Space::name);
  if constexpr (lies_on_device<Space>())
    if (device >= 0 && device != device_backend<Space>::default_device())
      name += joined(" of device ", device);
  return name;
}

}  // namespace ferry::detail
