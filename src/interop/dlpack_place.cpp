// SPDX-License-Identifier: Apache-2.0
#include <ferry/interop/detail/dlpack_place.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/spaces.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>
#include <type_traits>

namespace ferry::detail {

std::string device_text(DLDevice device) {
  const auto name = [&]() -> std::string {
    switch (device.device_type) {
      case kDLCPU:
        return "kDLCPU";
      case kDLCUDA:
        return "kDLCUDA";
      case kDLCUDAHost:
        return "kDLCUDAHost";
      case kDLROCM:
        return "kDLROCM";
      case kDLROCMHost:
        return "kDLROCMHost";
      case kDLCUDAManaged:
        return "kDLCUDAManaged";
      default:
        return "type " + std::to_string(static_cast<std::int32_t>(device.device_type));
    }
  };
  return name() + ":" + std::to_string(device.device_id);
}

const char* kind_text(memory_kind kind) {
  switch (kind) {
    case memory_kind::page_locked:
      return "page-locked host memory";
    case memory_kind::managed:
      return "managed memory";
    case memory_kind::device:
      return "device memory";
    default:
      return "ordinary host memory";
  }
}

template <MemorySpace Space>
DLDevice own_device(memory_place place) {
  constexpr dlpack_codes codes = device_backend<Space>::dlpack_devices();
  switch (place.kind) {
    case memory_kind::page_locked:
      return {static_cast<DLDeviceType>(codes.page_locked), 0};
    case memory_kind::managed:
      return {static_cast<DLDeviceType>(codes.managed), 0};
    case memory_kind::device:
      return {static_cast<DLDeviceType>(codes.device), place.device};
    default:
      return {kDLCPU, 0};
  }
}

template <MemorySpace Space>
memory_place place_of_nothing() {
  const int device = device_backend<Space>::place_of(nullptr).device;
  if (device_backend<Space>::device_is_host || std::is_same_v<Space, pageable_space>)
    return {memory_kind::host, device};
  if (std::is_same_v<Space, device_space>) return {memory_kind::device, device};
  return {std::is_same_v<Space, mapped_space> ? memory_kind::managed : memory_kind::page_locked, device};
}

template <MemorySpace Space>
bool may_present(memory_place place, DLDevice device) {
  constexpr dlpack_codes codes = device_backend<Space>::dlpack_devices();
  const DLDevice actual = own_device<Space>(place);
  if (device.device_type == actual.device_type) return device.device_id == actual.device_id;
  if (place.kind == memory_kind::host || place.kind == memory_kind::device) return false;
  if (device.device_type == kDLCPU || device.device_type == codes.page_locked) return device.device_id == 0;
  return device.device_type == codes.device && device.device_id == place.device;
}

template <MemorySpace Space>
void require_place(const std::string& subject, DLDevice device, const void* bytes_at) {
  using backend = device_backend<Space>;
  constexpr dlpack_codes codes = backend::dlpack_devices();
  const bool of_host = device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
                       device.device_type == kDLROCMHost || device.device_type == kDLCUDAManaged;
  const bool known = backend::device_is_host
                         ? of_host
                         : device.device_type == kDLCPU || device.device_type == codes.device ||
                               device.device_type == codes.page_locked || device.device_type == codes.managed;
  if (!known)
    throw invalid_argument(subject + " on " + device_text(device) +
                           ": this build of ferry reaches no such device");
  if (backend::device_is_host || bytes_at == nullptr) return;
  const memory_place place = backend::place_of(bytes_at);
  bool fits = false;
  std::string_view instead;
  if constexpr (std::is_same_v<Space, device_space>) {
    fits = place.kind == memory_kind::managed ||
           (place.kind == memory_kind::device && place.device == backend::place_of(nullptr).device);
    instead = place.kind == memory_kind::device ? "is of another device than Kokkos uses"
                                                : "is host memory: take it as pageable_space or pinned_space";
  } else if constexpr (std::is_same_v<Space, pageable_space>) {
    fits = place.kind != memory_kind::device;
    instead = "is not host memory: take it as device_space";
  } else {
    fits = place.kind == memory_kind::page_locked || place.kind == memory_kind::managed;
    instead = place.kind == memory_kind::device ? "is not host memory: take it as device_space"
                                                : "is not page-locked: take it as pageable_space";
  }
  if (!fits)
    throw invalid_argument(subject + " on " + device_text(device) + " is no memory of " +
                           std::string(Space::name) + ": it is " + kind_text(place.kind) + " of device " +
                           std::to_string(place.device) + ", which " + std::string(instead));
}

#define FERRY_DLPACK_OF(SPACE)                              \
  template DLDevice own_device<SPACE>(memory_place);        \
  template memory_place place_of_nothing<SPACE>();          \
  template bool may_present<SPACE>(memory_place, DLDevice); \
  template void require_place<SPACE>(const std::string&, DLDevice, const void*);
FERRY_DLPACK_OF(device_space)
FERRY_DLPACK_OF(pinned_space)
FERRY_DLPACK_OF(mapped_space)
FERRY_DLPACK_OF(pageable_space)
#undef FERRY_DLPACK_OF

}  // namespace ferry::detail
