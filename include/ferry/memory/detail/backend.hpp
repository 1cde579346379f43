// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ferry {

/// The backend that provides the four memory spaces; ferry.hpp defines it. Headers name it through a template
/// parameter (`device_backend<Space>`), so they need no backend to compile. docs/backends.md lists its
/// members.
template <class Dependent>
struct device_backend;

/// A block of memory from a backend.
struct memory_block {
  void* data = nullptr;
  std::size_t bytes = 0;
  /// How the backend made the block; passed back to it on release.
  int provenance = 0;
  /// Which NUMA placement the backend requested; 0 for the default of the system.
  int placement = 0;
  /// The device of the memory, or the one whose node has it; -1 if the backend has only one.
  int device = -1;
};

/// How another process opens an allocation: bytes of the backend, and how many bytes after the address that
/// they open the allocation begins.
struct exported_memory {
  std::array<unsigned char, 64> token{};
  std::size_t offset = 0;
};

/// The identity of a device, the same in all processes.
using device_uuid = std::array<unsigned char, 16>;

/// How a block of memory was made, according to the device's runtime.
enum class memory_kind {
  host,         ///< ordinary host memory
  page_locked,  ///< host memory that the device reaches at the same address
  managed,      ///< memory that host and device reach at one address and whose pages may move
  device        ///< memory of one device
};

/// The memory of an address. `device` is the device of kind device; of other kinds the one that Kokkos uses.
struct memory_place {
  memory_kind kind = memory_kind::host;
  int device = 0;
};

/// DLPack's device types for the memory of one backend.
struct dlpack_codes {
  std::int32_t device;
  std::int32_t page_locked;
  std::int32_t managed;
};

namespace detail {

/// True if the environment variable FERRY_WITHOUT, words with commas between them, names an ability of the
/// machine that backends are to do without, so that tests take the paths of other machines. Callers keep the
/// answer: it must not change while memory is in use, and each call reads the environment.
inline bool without(std::string_view ability) {
  const char* variable = std::getenv("FERRY_WITHOUT");
  for (std::string_view list = variable == nullptr ? "" : variable; !list.empty();) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == ability) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

/// True if the backend of a space has devices with numbers; those of users may not.
template <class Space>
consteval bool has_devices() {
  return requires {
    device_backend<Space>::default_device();
    device_backend<Space>::device_count();
  };
}

/// True if memory of the space lies on one of several devices.
template <class Space>
consteval bool lies_on_device() {
  return !Space::is_host_accessible && has_devices<Space>();
}

[[noreturn]] void refuse_device(const std::string& label, int device, int count);

/// The device that memory of the space gets if `device` is asked for, -1 for host memory. Throws
/// invalid_argument for a device that there is none of.
template <MemorySpace Space>
int device_of_memory(const std::string& label, int device) {
  if (device != -1) {
    int count = 1;
    if constexpr (has_devices<Space>()) count = device_backend<Space>::device_count();
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

}  // namespace detail
}  // namespace ferry
