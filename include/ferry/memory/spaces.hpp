// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>

#include <string_view>

namespace ferry {

/// The device's own memory; on a host backend, host memory aligned to huge pages. Host code must not
/// dereference it.
struct device_space {
  /// Facts about the space, see ferry::MemorySpace.
  /// @{
  using ferry_memory_space = device_space;
  static constexpr std::string_view name = "device_space";
  static constexpr bool is_host_accessible = false;
  static constexpr bool is_device_mapped = true;
  /// @}
};
static_assert(MemorySpace<device_space>);

/// Page-locked host memory of exactly the requested size. DMA engines reach it at full speed; kernels reach
/// it through small device pages.
struct pinned_space {
  /// Facts about the space, see ferry::MemorySpace.
  /// @{
  using ferry_memory_space = pinned_space;
  static constexpr std::string_view name = "pinned_space";
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = true;
  /// @}
};
static_assert(MemorySpace<pinned_space>);

/// Host memory that is mapped into the device's address space with large device pages. Kernels dereference it
/// at the speed of the link for tables of any size.
struct mapped_space {
  /// Facts about the space, see ferry::MemorySpace.
  /// @{
  using ferry_memory_space = mapped_space;
  static constexpr std::string_view name = "mapped_space";
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = true;
  /// @}
};
static_assert(MemorySpace<mapped_space>);

/// Ordinary host memory. A device reaches it through page-locked slots. Where the machine lets the
/// device dereference it, which is queried at run time, path::direct works too.
struct pageable_space {
  /// Facts about the space, see ferry::MemorySpace.
  /// @{
  using ferry_memory_space = pageable_space;
  static constexpr std::string_view name = "pageable_space";
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = false;
  /// @}
};
static_assert(MemorySpace<pageable_space>);

}  // namespace ferry
