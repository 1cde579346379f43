// SPDX-License-Identifier: Apache-2.0
#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/interop/detail/dlpack_facts.hpp>
#include <ferry/interop/from_dlpack.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/spaces.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

namespace ferry::detail {

std::string device_text(DLDevice device) {
  const auto name = [&]() -> std::string {
    if (device.device_type == kDLCPU) return "kDLCPU";
    if (device.device_type == kDLCUDA) return "kDLCUDA";
    if (device.device_type == kDLCUDAHost) return "kDLCUDAHost";
    if (device.device_type == kDLROCM) return "kDLROCM";
    if (device.device_type == kDLROCMHost) return "kDLROCMHost";
    if (device.device_type == kDLCUDAManaged) return "kDLCUDAManaged";
    return "type " + std::to_string(static_cast<std::int32_t>(device.device_type));
  };
  return name() + ":" + std::to_string(device.device_id);
}

const char* kind_text(memory_kind kind) {
  if (kind == memory_kind::page_locked) return "page-locked host memory";
  if (kind == memory_kind::managed) return "managed memory";
  return kind == memory_kind::device ? "device memory" : "ordinary host memory";
}

template <MemorySpace Space>
DLDevice own_device(memory_place place) {
  constexpr dlpack_codes codes = device_backend<Space>::dlpack_devices();
  if (place.kind == memory_kind::page_locked) return {static_cast<DLDeviceType>(codes.page_locked), 0};
  if (place.kind == memory_kind::managed) return {static_cast<DLDeviceType>(codes.managed), 0};
  if (place.kind == memory_kind::device) return {static_cast<DLDeviceType>(codes.device), place.device};
  return {kDLCPU, 0};
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

std::string dlpack_type_text(DLDataType type) {
  struct type_name {
    int code;
    const char* name;
    bool has_bits;
  };
  static constexpr type_name names[] = {{kDLInt, "int", true},
                                        {kDLUInt, "uint", true},
                                        {kDLFloat, "float", true},
                                        {kDLBfloat, "bfloat", true},
                                        {kDLComplex, "complex", true},
                                        {kDLBool, "bool", true},
                                        {dlpack_e4m3, "float8_e4m3fn", false},
                                        {dlpack_e5m2, "float8_e5m2", false},
                                        {dlpack_e8m0, "float8_e8m0fnu", false},
                                        {dlpack_e2m1, "float4_e2m1fn", false}};
  const auto* const known = std::find_if(std::begin(names), std::end(names),
                                         [&](const type_name& entry) { return entry.code == type.code; });
  const std::string name =
      known == std::end(names) ? "type code " + std::to_string(type.code) + ", bits " : known->name;
  return name + (known == std::end(names) || known->has_bits ? std::to_string(type.bits) : "") +
         (type.lanes == 1 ? "" : " x " + std::to_string(type.lanes) + " lanes");
}

std::string numbers_text(const std::int64_t* numbers, std::int32_t count) {
  std::string text = "[";
  for (std::int32_t i = 0; numbers != nullptr && i < count; ++i)
    text += (i == 0 ? "" : " x ") + std::to_string(numbers[i]);
  return text + "]";
}

std::size_t dlpack_extents(const std::string& subject, const DLTensor& source,
                           std::array<std::size_t, max_rank>& extents) {
  if (source.ndim < 0 || source.ndim > static_cast<std::int32_t>(max_rank))
    throw invalid_argument(subject + " has " + std::to_string(source.ndim) + " extents, must have 0 to " +
                           std::to_string(max_rank));
  if (source.ndim == 0) {
    extents[0] = 1;
    return 1;
  }
  if (source.shape == nullptr)
    throw invalid_argument(subject + " has no extents: the pointer to them is null");
  const auto rank = static_cast<std::size_t>(source.ndim);
  for (std::size_t i = 0; i < rank; ++i) {
    if (source.shape[i] < 0)
      throw invalid_argument(subject + ": extent " + std::to_string(i) + " is " +
                             std::to_string(source.shape[i]));
    extents[i] = static_cast<std::size_t>(source.shape[i]);
  }
  return rank;
}

void require_compact(const std::string& subject, const DLTensor& source, std::size_t size) {
  if (source.strides == nullptr || size == 0) return;
  std::int64_t expected = 1;
  for (std::int32_t i = source.ndim; i-- > 0;) {
    if (source.shape[i] != 1 && source.strides[i] != expected)
      throw invalid_argument(subject + " has strides " + numbers_text(source.strides, source.ndim) +
                             ", but a ferry::tensor is row-major without gaps; make it contiguous first");
    expected *= source.shape[i];
  }
}

void* dlpack_data(const std::string& subject, const DLTensor& source, std::size_t size,
                  std::size_t alignment) {
  if (size == 0) return nullptr;
  if (source.data == nullptr) throw invalid_argument(subject + " has no memory: its pointer is null");
  const auto address = reinterpret_cast<std::uintptr_t>(source.data) + source.byte_offset;
  if (address % alignment != 0)
    throw invalid_argument(subject + " begins at an address that is no multiple of " +
                           std::to_string(alignment) + ", the alignment of its elements");
  return static_cast<char*>(source.data) + source.byte_offset;
}

}  // namespace ferry::detail
