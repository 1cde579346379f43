// SPDX-License-Identifier: Apache-2.0

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/interop/detail/dlpack_facts.hpp>
#include <ferry/interop/dlpack.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/spaces.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace ferry::detail {
namespace {

using dlpack_backend = device_backend<void>;

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

/// The device of DLPack that memory belongs to.
DLDevice own_device(memory_place location) {
  constexpr dlpack_codes codes = dlpack_backend::dlpack_devices();
  if (location.kind == memory_kind::page_locked) return {static_cast<DLDeviceType>(codes.page_locked), 0};
  if (location.kind == memory_kind::managed) return {static_cast<DLDeviceType>(codes.managed), 0};
  if (location.kind == memory_kind::device) return {static_cast<DLDeviceType>(codes.device), location.device};
  return {kDLCPU, 0};
}

/// The location of memory of a space that has no address because it has no bytes.
memory_place location_of_nothing(std::string_view space) {
  const int device = dlpack_backend::place_of(nullptr).device;
  if (dlpack_backend::device_is_host || space == pageable_space::name) return {memory_kind::host, device};
  if (space == device_space::name) return {memory_kind::device, device};
  return {space == mapped_space::name ? memory_kind::managed : memory_kind::page_locked, device};
}

bool may_present(memory_place location, DLDevice device) {
  constexpr dlpack_codes codes = dlpack_backend::dlpack_devices();
  const DLDevice actual = own_device(location);
  if (device.device_type == actual.device_type) return device.device_id == actual.device_id;
  if (location.kind == memory_kind::host || location.kind == memory_kind::device) return false;
  if (device.device_type == kDLCPU || device.device_type == codes.page_locked) return device.device_id == 0;
  return device.device_type == codes.device && device.device_id == location.device;
}

/// Throws invalid_argument if memory that a producer says to be of a device can't be memory of a space.
/// `bytes` is null for an array without elements, whose address says nothing.
void require_location(const std::string& subject, std::string_view space, DLDevice device,
                      const void* bytes) {
  constexpr dlpack_codes codes = dlpack_backend::dlpack_devices();
  const bool of_host = device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
                       device.device_type == kDLROCMHost || device.device_type == kDLCUDAManaged;
  const bool known = dlpack_backend::device_is_host
                         ? of_host
                         : device.device_type == kDLCPU || device.device_type == codes.device ||
                               device.device_type == codes.page_locked || device.device_type == codes.managed;
  if (!known)
    throw invalid_argument(subject + " on " + device_text(device) +
                           ": this build of ferry reaches no such device");
  if (dlpack_backend::device_is_host || bytes == nullptr) return;
  const memory_place location = dlpack_backend::place_of(bytes);
  bool fits = false;
  std::string_view instead;
  if (space == device_space::name) {
    fits =
        location.kind == memory_kind::managed ||
        (location.kind == memory_kind::device && location.device == dlpack_backend::place_of(nullptr).device);
    instead = location.kind == memory_kind::device
                  ? "is of another device than Kokkos uses"
                  : "is host memory: take it as pageable_space or pinned_space";
  } else if (space == pageable_space::name) {
    fits = location.kind != memory_kind::device;
    instead = "is not host memory: take it as device_space";
  } else {
    fits = location.kind == memory_kind::page_locked || location.kind == memory_kind::managed;
    instead = location.kind == memory_kind::device ? "is not host memory: take it as device_space"
                                                   : "is not page-locked: take it as pageable_space";
  }
  if (!fits)
    throw invalid_argument(joined(subject, " on ", device_text(device), " is no memory of ", space,
                                  ": it is ", kind_text(location.kind), " of device ", location.device,
                                  ", which ", instead));
}

/// "float32"; with lanes "float32 x 4 lanes".
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

/// "[3 x 4]"
std::string numbers_text(const std::int64_t* numbers, std::int32_t count) {
  std::string text = "[";
  for (std::int32_t i = 0; numbers != nullptr && i < count; ++i)
    text += (i == 0 ? "" : " x ") + std::to_string(numbers[i]);
  return text + "]";
}

/// Null strides are those of a row-major array.
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

}  // namespace

DLDevice presented_device(const std::string& label, std::string_view space, const void* data,
                          std::optional<DLDevice> target) {
  const memory_place location = data != nullptr ? dlpack_backend::place_of(data) : location_of_nothing(space);
  const DLDevice device = target.value_or(own_device(location));
  if (!may_present(location, device))
    throw invalid_argument("ferry::to_dlpack: '" + label + "' is " + kind_text(location.kind) + " (" +
                           device_text(own_device(location)) + "), which can't be presented as that of " +
                           device_text(device));
  return device;
}

std::size_t dlpack_extents(std::string& subject, const DLTensor& source, DLDataType type,
                           std::array<std::size_t, max_rank>& extents) {
  if (source.ndim < 0 || source.ndim > static_cast<std::int32_t>(max_rank))
    throw invalid_argument(joined(subject, " has ", source.ndim, " extents, must have 0 to ", max_rank));
  if (source.ndim != 0 && source.shape == nullptr)
    throw invalid_argument(subject + " has no extents: the pointer to them is null");
  extents[0] = 1;
  for (std::int32_t i = 0; i < source.ndim; ++i) {
    if (source.shape[i] < 0) throw invalid_argument(joined(subject, ": extent ", i, " is ", source.shape[i]));
    extents[static_cast<std::size_t>(i)] = static_cast<std::size_t>(source.shape[i]);
  }
  subject += " " + numbers_text(source.shape, source.ndim) + " of " + dlpack_type_text(source.dtype);
  if (source.dtype.code != type.code || source.dtype.bits != type.bits || source.dtype.lanes != type.lanes)
    throw invalid_argument(subject + " is no array of " + dlpack_type_text(type) +
                           ", the element type that it is taken as");
  return static_cast<std::size_t>(std::max(source.ndim, 1));
}

void* dlpack_data(const std::string& subject, const DLTensor& source, std::size_t size, std::size_t alignment,
                  std::string_view space) {
  require_compact(subject, source, size);
  if (size != 0 && source.data == nullptr)
    throw invalid_argument(subject + " has no memory: its pointer is null");
  void* const data = size == 0 ? nullptr : static_cast<char*>(source.data) + source.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0)
    throw invalid_argument(joined(subject, " begins at an address that is no multiple of ", alignment,
                                  ", the alignment of its elements"));
  require_location(subject, space, source.device, data);
  return data;
}

}  // namespace ferry::detail
