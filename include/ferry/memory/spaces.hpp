#pragma once

#include <ferry/concepts/memory_space.hpp>

#include <string_view>

namespace ferry {

/// The device's own memory; on a host backend, huge-page aligned host memory. Host code must not rely on
/// reaching it.
struct device_space {
  using ferry_memory_space = device_space;
  static constexpr std::string_view name = "device_space";
  static constexpr bool is_host_accessible = false;
  static constexpr bool is_device_mapped = true;
};
static_assert(MemorySpace<device_space>);

/// Page-locked host memory of exactly the asked size: DMA engines reach it at full speed, kernels reach it
/// through small device pages.
struct pinned_space {
  using ferry_memory_space = pinned_space;
  static constexpr std::string_view name = "pinned_space";
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = true;
};
static_assert(MemorySpace<pinned_space>);

/// Host memory in the device's address space behind large device pages: kernels dereference it at the link's
/// speed, whatever the table's size.
struct mapped_space {
  using ferry_memory_space = mapped_space;
  static constexpr std::string_view name = "mapped_space";
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = true;
};
static_assert(MemorySpace<mapped_space>);

/// Ordinary host memory. A device reaches it through a page-locked ring, or directly where the machine allows
/// it, which is asked at run time.
struct pageable_space {
  using ferry_memory_space = pageable_space;
  static constexpr std::string_view name = "pageable_space";
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = false;
};
static_assert(MemorySpace<pageable_space>);

}  // namespace ferry
